// Device planning, text in and text out. Each file of cases/ states its devices in the first line:
//
//   devices: cpu:0, gpu:0
//   === one sentence of intent
//   fn (%x: float32) { … }
//   ---
//   fn (%x: float32) -> float32 { … }      or: unchanged      or: error: …
//
// What is planned is planned again, which must change nothing, and computes what it did before.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "case_file.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "passes/devices/operators.h"
#include "passes/devices/plan_devices.h"
#include "passes/verify.h"
#include "tensor_program/module_programs.h"
#include "test_paths.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

std::string print(const Module& module) {
  const std::string text = to_text(module);
  return text.substr(text.find('\n') + 1);
}

class DeviceCases : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceCases, AreAsExpected) {
  register_operators();
  const fs::path path = fs::path(COLLAGE_TESTS_DIR) / "passes" / "devices" / "cases" / GetParam();
  CaseFile file = read_cases(path);
  ASSERT_FALSE(file.cases.empty()) << path;
  const std::string kHead = "devices: ";
  ASSERT_EQ(file.head.substr(0, kHead.size()), kHead);
  const Result<DeclaredDevices> devices =
      DeclaredDevices::parse(trimmed(file.head.substr(kHead.size())));
  ASSERT_TRUE(devices.ok()) << devices.status().to_string();
  ParseOptions options;
  options.positions = true;
  options.abstract_function = tensor_program::abstract_function;
  for (Case& c : file.cases) {
    SCOPED_TRACE(c.intent);
    const Result<Module> before = parse_module(c.input, options);
    ASSERT_TRUE(before.ok()) << before.status().to_string() << "\n" << c.input;
    const Result<Module> after = plan_devices(*before, *devices);
    std::string text = after.ok() ? print(*after) : "error: " + after.status().to_string() + "\n";
    if (after.ok()) {
      if (text == print(*before)) text = "unchanged\n";
      EXPECT_TRUE(verify(*after).ok()) << verify(*after).to_string();
      const Result<Module> again = plan_devices(*after, *devices);
      ASSERT_TRUE(again.ok()) << again.status().to_string();
      EXPECT_EQ(print(*again), print(*after)) << "planning it again changes it";
      // What the text says is enough to plan it again.
      const Result<Module> read = parse_module(to_text(*after), options);
      ASSERT_TRUE(read.ok()) << read.status().to_string();
      EXPECT_EQ(print(*read), print(*after));
    }
    if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) {
      c.expected = text;
    } else {
      EXPECT_EQ(trimmed(text), trimmed(c.expected));
    }
  }
  if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) write_cases(path, file);
}

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(COLLAGE_TESTS_DIR) / "passes" / "devices" / "cases"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Devices, DeviceCases, ::testing::ValuesIn(case_files()),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

}  // namespace
}  // namespace collage
