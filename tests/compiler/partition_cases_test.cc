// Partitioning by mock costs, text in and text out. Each file of partition_cases/ names its
// configurations, then holds cases:
//
//   config NAME {"targets": …}                     on one line
//   === one sentence of intent
//   with NAME                                      or NAME max_estimates=2
//   #[version = "0.0.5"]
//   def @main(…) { … }
//   ---
//   cost 1.9, 3 estimates                          or: error: …
//   #[version = "0.0.5"]
//   …
//
// What comes out is also put back together: with all kernels inlined it must be what went in. With
// COLLAGE_REWRITE_EXPECTED=1 the files are written anew with what comes out, for review.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backend/targets/backends.h"
#include "case_file.h"
#include "compiler/mock_partition.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "test_paths.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

std::string config_text(const CaseFile& file, const Case& c) {
  std::istringstream words(c.with);
  std::string name, word;
  words >> name;
  std::istringstream configs(file.head);
  for (std::string line; std::getline(configs, line);) {
    if (!line.starts_with("config " + name + " ")) continue;
    nlohmann::json json = nlohmann::json::parse(line.substr(line.find('{')));
    while (words >> word) {
      size_t equals = word.find('=');
      json["mock_costs"][word.substr(0, equals)] = nlohmann::json::parse(word.substr(equals + 1));
    }
    return json.dump();
  }
  ADD_FAILURE() << "no config '" << name << "'";
  return "";
}

// main with the functions that it calls in place of their names.
Function whole(const Module& module) {
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    (void)original;
    const auto* call = as<CallNode>(rebuilt);
    const auto* global = call != nullptr ? as<GlobalVarNode>(call->callee) : nullptr;
    if (global == nullptr) return rebuilt;
    return make_function_call(module.functions.at(global->name), call->args);
  });
  Result<Function> literal = rewriter.rewrite(module.main());
  EXPECT_TRUE(literal.ok()) << literal.status().to_string();
  return untangle_tuples(*inline_calls(*literal));
}

std::string run_case(const CaseFile& file, const Case& c) {
  Result<PartitionConfig> config = parse_config(config_text(file, c), "config");
  if (!config) return "error: " + config.status().to_string() + "\n";
  PrintOptions print;
  print.constants = PrintOptions::Constants::kShapeOnly;
  ParseOptions parse;
  parse.constant = [&](const TensorType& type, size_t) -> Result<Tensor> {
    Tensor value = Tensor::zeros(type.dtype, type.shape);
    print.by_type_only.insert(value.raw());
    return value;
  };
  Result<Module> module = parse_module(c.input, parse);
  if (!module) return "error: " + module.status().to_string() + "\n";
  Result<MockPartition> result = partition_with_mock_costs(*module, *config);
  if (!result) return "error: " + result.status().to_string() + "\n";
  EXPECT_TRUE(
      structural_equal(untangle_tuples(*inline_calls(module->main())), whole(result->module)));
  // What is printed parses back.
  std::string text = to_text(result->module, print);
  Result<Module> again = parse_module(text, parse);
  EXPECT_TRUE(again.ok()) << again.status().to_string();
  if (again.ok()) {
    EXPECT_EQ(to_text(*again, print), text);
  }
  std::string host;
  for (const std::string& op : result->host) host += (host.empty() ? ", host: " : " ") + op;
  return fmt::format("cost {:.6g}, {} estimates{}\n{}", result->cost, result->estimates, host,
                     text);
}

TEST(PartitionCases, TextInTextOut) {
  register_all();
  bool rewrite = std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr;
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(COLLAGE_TESTS_DIR "/compiler/partition_cases")) {
    CaseFile file = read_cases(entry.path());
    for (Case& c : file.cases) {
      SCOPED_TRACE(entry.path().filename().string() + ": " + c.intent);
      std::string actual = run_case(file, c);
      if (rewrite) {
        c.expected = actual;
      } else {
        EXPECT_EQ(trimmed(actual), trimmed(c.expected));
      }
      ++count;
    }
    if (rewrite) write_cases(entry.path(), file);
  }
  EXPECT_GT(count, 20u);
}

}  // namespace
}  // namespace collage
