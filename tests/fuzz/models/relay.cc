// Relay text, as `collage run model.relay` takes it: parsed, programs linked, simplified. What is
// accepted prints and parses to an equal module.
#include <gtest/gtest.h>

#include <filesystem>

#include "case_file.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_text.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "tensor_program/call.h"
#include "tensor_program/module_programs.h"
#include "test_paths.h"

namespace collage::fuzz {
namespace {

constexpr const char* kPrograms = R"relay(#[version = "0.0.5"]
program @scaled {
  param A: float32[3];
  param B: float32[3];
  const f: float32[1] = {10};
  result C[i:3] = A[i] * f[0] + B[i];
}
program @add {
  param A: float32[3];
  inout X[i:3]: float32;
  update X[i] = sum() A[i];
}
extern @mod(Tensor[(3), float32]) -> Tensor[(3), float32] = "mod_lib";
external_mods["mod_lib"] = ("onednn", "relu(float32)", meta[relay.Constant][1] /*Tensor[(4), uint8]*/);
def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
  %0 = @scaled(%x, @add(%x, %y));
  %1 = fn (%p: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] {
    tanh(%p)
  };
  add(@mod(%1(%0)), meta[relay.Constant][0] /*Tensor[(3), float32]*/)
}
#[metadata]
{"relay.Constant": [{"dtype": "float32", "shape": [3], "values": [1.5, -2.0, 1e-3]},
  {"dtype": "uint8", "shape": [4], "values": [80, 75, 3, 4]}]}
)relay";

ParseOptions options() {
  ParseOptions options;
  options.folder = scratch_folder();
  options.abstract_function = tensor_program::abstract_function;
  return options;
}

std::vector<std::string> relay_seeds() {
  std::vector<std::string> texts{kPrograms};
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"/passes/cases", "/compiler/partition_cases"})
    for (const auto& file :
         std::filesystem::directory_iterator(std::string(COLLAGE_TESTS_DIR) + folder))
      files.push_back(file.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files)
    for (const Case& one : read_cases(file).cases)
      if (one.input.size() < 3000 && parse_module(one.input, options()).ok())
        texts.push_back(one.input);
  return texts;
}

// Whether constants, and what may be folded of them, fit in a moment's work.
bool is_small(const Module& module) {
  constexpr double kMostElements = 1 << 16;
  for (const auto& [name, function] : module.functions)
    for (const Expr& expr : post_order(function->body))
      for (const TensorType& leaf : expr->type().leaves()) {
        double elements = 1;
        for (const int64_t extent : leaf.shape) elements *= static_cast<double>(extent);
        if (elements > kMostElements) return false;
      }
  return true;
}

Outcome run_relay(const std::string& input) {
  Result<Module> module = parse_module(input, options());
  if (!module.ok()) {
    const std::string why = module.status().to_string();
    const bool syntax = why.find("expected ") != std::string::npos ||
                        why.find("should stand") != std::string::npos ||
                        why.find("does not end") != std::string::npos ||
                        why.find("is not closed") != std::string::npos;
    return syntax ? Outcome::kNoSyntax : Outcome::kRefused;
  }
  const std::string text = to_text(*module);
  const Result<Module> again = parse_module(text, options());
  EXPECT_TRUE(again.ok()) << again.status().to_string() << "\n" << text;
  if (again.ok()) {
    EXPECT_TRUE(structural_equal(*module, *again)) << text;
  }
  if (module->functions.count("main") == 0 || !is_small(*module)) return Outcome::kAccepted;
  Module linked = *module;
  if (tensor_program::link_programs(linked).ok()) {
    // Naming a program writes its text anew, which linking takes as it is.
    Module named = tensor_program::named_programs(linked).value();
    EXPECT_TRUE(tensor_program::link_programs(named).ok());
    Module twice = tensor_program::named_programs(named).value();
    EXPECT_TRUE(tensor_program::link_programs(twice).ok());
    EXPECT_TRUE(structural_equal(twice, named)) << to_text(named);
  }
  const auto simplified = simplification_pipeline().run(*module);
  if (!simplified.ok()) {
    EXPECT_NE(simplified.status().code(), ErrorCode::kInternal) << simplified.status().to_string();
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget relay() {
  register_all_ops();
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
  const std::vector<std::string> texts = relay_seeds();
  return {"relay", texts,
          [mutator = TextMutator(texts)](Random& random) { return mutator.make(random); },
          run_relay};
}

}  // namespace collage::fuzz
