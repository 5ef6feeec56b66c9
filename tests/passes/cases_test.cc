// Passes, text in and text out. Each file of cases/ holds cases of the passes that its first line
// names, run in that order:
//
//   passes: simplify
//   === one sentence of intent
//   fn (%x: float32) { … }
//   ---
//   fn (%x: float32) -> float32 { … }      or: unchanged
//
// Constants of more than 4 elements stand by type only and are filled with seeded values from 0.5
// to 1.5. Every case is also run before and after through the interpreter on random inputs. With
// COLLAGE_REWRITE_EXPECTED=1 the files are written anew with what the passes give, for review.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "case_file.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "passes/verify.h"
#include "random_tensors.h"
#include "tensor_program/call.h"
#include "test_paths.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

// The passes that the head names.
std::vector<std::string> passes_of(const CaseFile& file) {
  std::istringstream words(file.head);
  std::vector<std::string> passes;
  std::string word;
  words >> word;
  EXPECT_EQ(word, "passes:");
  while (words >> word) passes.push_back(word);
  return passes;
}

std::string print(const Function& function) {
  PrintOptions options;
  options.constants = PrintOptions::Constants::kShapeOnly;
  options.inline_limit = 4;
  std::string text = to_text(function, options);
  return text.substr(text.find('\n') + 1);
}

Pass find_pass(const std::string& name) {
  const Pipeline pipeline = simplification_pipeline();
  for (const Pass& pass : pipeline.passes())
    if (pass.name == name) return pass;
  ADD_FAILURE() << "no pass '" << name << "'";
  return {};
}

class Cases : public ::testing::TestWithParam<std::string> {};

TEST_P(Cases, AreAsExpected) {
  register_all_ops();
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
  fs::path path = fs::path(COLLAGE_TESTS_DIR) / "passes" / "cases" / (GetParam() + ".txt");
  CaseFile file = read_cases(path);
  ASSERT_FALSE(file.cases.empty()) << path;
  const std::vector<std::string> passes = passes_of(file);
  for (Case& c : file.cases) {
    SCOPED_TRACE(c.intent);
    ParseOptions constants{.folder = {},
                           .constant = [](const TensorType& type, size_t index) -> Result<Tensor> {
                             return random_tensor(type, index, 0.5, 1.5);
                           },
                           .abstract_function = {}};
    Result<Function> before = parse_function(c.input, constants);
    ASSERT_TRUE(before.ok()) << before.status().to_string() << "\n" << c.input;
    Module module(*before);
    for (const std::string& name : passes) {
      Result<bool> changed = find_pass(name).run(module);
      ASSERT_TRUE(changed.ok()) << changed.status().to_string();
      if (!*changed && passes.size() == 1) {
        EXPECT_TRUE(structural_equal(module.main(), *before)) << "a change was not reported";
      }
      Status legal = verify(module);
      ASSERT_TRUE(legal.ok()) << legal.to_string();
    }
    std::string text = print(module.main());
    bool unchanged = text == print(*before);
    if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) {
      c.expected = unchanged ? "unchanged\n" : text;
    } else if (trimmed(c.expected) == "unchanged") {
      EXPECT_TRUE(unchanged) << text;
    } else {
      EXPECT_EQ(trimmed(text), trimmed(c.expected));
    }
    expect_same_values(*before, module.main());
  }
  if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) write_cases(path, file);
}

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(COLLAGE_TESTS_DIR) / "passes" / "cases"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Passes, Cases, ::testing::ValuesIn(case_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace collage
