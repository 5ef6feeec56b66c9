// The seed's listings as script: each file of script/ is one, whose head says what was mended. It
// computes what the same module computes that is written as Relay text.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "case_file.h"
#include "frontend/script/script.h"
#include "frontend/script/symbolic_module.h"
#include "ir/structural.h"
#include "modules/external_functions.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "passes/inline_functions.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"
#include "test_paths.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using tensor_program::ExternalFunction;

const fs::path& folder() {
  static const fs::path path = fs::path(COLLAGE_TESTS_DIR) / "modules";
  return path;
}

constexpr const char* kConvolution =
    "def @main(%x: Tensor[(1, 10, 32, 32), float32]) {\n"
    "  nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(20, 10, 3, 3), float32]*/, "
    "padding=[1, 1, 1, 1])\n}\n";
constexpr const char* kConvolutions =
    "def @main(%x: Tensor[(1, 10, 32, 32), float32]) {\n"
    "  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(20, 10, 3, 3), float32]*/, "
    "padding=[1, 1, 1, 1]);\n"
    "  nn.conv2d(nn.relu(%0), meta[relay.Constant][1] /*Tensor[(20, 20, 3, 3), float32]*/, "
    "padding=[1, 1, 1, 1])\n}\n";

struct ScriptListing {
  std::string file, function;
  std::string same_as;  // a file of listings/, or Relay text
};
const ScriptListing kListings[] = {
    {"1_graph_and_programs", "relax_func", "1_graph_and_programs"},
    {"2_weight_layout", "main", "2_weight_layout"},
    {"3_lifted_layout", "main", "3_lifted_layout"},
    {"4_function_of_a_module", "main", "4_function_of_a_module"},
    {"5_external_compiler", "main", "4_function_of_a_module"},
    {"6_library_function", "main", kConvolution},
    {"7_ahead_of_time", "main", "7_ahead_of_time"},
    {"8_custom_fusion", "main", kConvolutions},
};

Result<Module> read(const std::string& text) {
  ParseOptions options;
  options.constant = [](const TensorType& type, size_t index) {
    return synthetic_constant(type, index);
  };
  return tensor_program::parse_module_text(text, options);
}

Tensor copy_of(const DLTensor& view) {
  Tensor tensor = Tensor::empty(DType::kFloat32, Shape(view.shape, view.shape + view.ndim));
  std::memcpy(tensor.raw(), view.data, tensor.bytes());
  return tensor;
}

/// A library's convolution of an image of 32 x 32, with a ReLU or without.
void register_convolution(const std::string& label, bool relu) {
  tensor_program::register_external(
      label,
      [](std::span<const TensorType>) -> Result<TensorType> {
        return TensorType{{1, 20, 32, 32}, DType::kFloat32};
      },
      [relu](std::span<const DLTensor> inputs, const DLTensor& result) -> Status {
        const std::vector<Tensor> tensors = {copy_of(inputs[0]), copy_of(inputs[1])};
        std::vector<Expr> params;
        for (const Tensor& tensor : tensors)
          params.push_back(make_var("p", TensorType{tensor.shape(), tensor.dtype()}));
        Expr body = TRY(make_call("nn.conv2d", params, {{"padding", Ints{1, 1, 1, 1}}}));
        if (relu) body = TRY(make_call("nn.relu", {body}));
        const std::vector<Tensor> made = TRY(interpret(make_function(params, body), tensors));
        std::memcpy(result.data, made[0].raw(), made[0].bytes());
        return {};
      });
}

/// What the function computes as the module's main, by the interpreter.
Result<std::vector<Tensor>> computed(Module module, const std::string& function,
                                     std::span<const Tensor> inputs) {
  module.functions["main"] = module.functions.at(function);
  TRY(inline_functions(module));
  TRY(tensor_program::link_programs(module));
  return interpret(module.main(), inputs);
}

class ScriptListings : public ::testing::TestWithParam<ScriptListing> {
 protected:
  static void SetUpTestSuite() {
    register_convolution("conv_relu_lib", true);
    register_convolution("torch.conv2d", false);
  }
};

TEST_P(ScriptListings, ComputeWhatRelayTextDoes) {
  const ScriptListing& listing = GetParam();
  const std::string text = read_file(folder() / "script" / (listing.file + ".script")).value();
  const Result<Module> module = read(text);
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  ASSERT_EQ(module->functions.count(listing.function), 1U);
  std::string other = listing.same_as;
  if (other.find('@') == std::string::npos)
    other = read_cases(folder() / "listings" / (other + ".txt")).cases.at(0).input;
  const Result<Module> relay = read(other);
  ASSERT_TRUE(relay.ok()) << relay.status().to_string();
  const std::vector<Tensor> inputs = synthetic_inputs(relay->main(), 5).value();
  const Result<std::vector<Tensor>> expected = computed(*relay, "main", inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  const Result<std::vector<Tensor>> actual = computed(*module, listing.function, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().to_string();
  ASSERT_EQ(actual->size(), expected->size());
  for (size_t i = 0; i < actual->size(); ++i) {
    const Difference difference = compare_tensors((*actual)[i], (*expected)[i], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
  }
  const Result<std::string> printed = tensor_program::to_script(*module);
  ASSERT_TRUE(printed.ok()) << printed.status().to_string();
  const Result<Module> again = read(*printed);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_TRUE(structural_equal(*module, *again));
}

/// The first listing as the seed has it: nothing says what n, d and m are.
TEST(SymbolicListings, TheFirstListingHoldsForAllSizes) {
  std::string text = read_file(folder() / "script" / "1_graph_and_programs.script").value();
  const Module fixed = read(text).value();
  const std::string numbers = "n, d, m = 16, 32, 24\n";
  ASSERT_NE(text.find(numbers), std::string::npos);
  text.erase(text.find(numbers), numbers.size());
  EXPECT_FALSE(read(text).ok());
  const auto module = tensor_program::SymbolicModule::parse(text, {}, "relax_func");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(module->signature(),
            "fn (%x: Tensor[(n, d), float32], %w: Tensor[(d, m), float32]) -> Tensor[(n * m), "
            "float32]");
  const Result<Module> made = module->instantiate({{"n", 16}, {"d", 32}, {"m", 24}});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_TRUE(structural_equal(*made, fixed));
}

INSTANTIATE_TEST_SUITE_P(Modules, ScriptListings, ::testing::ValuesIn(kListings),
                         [](const auto& info) { return info.param.file; });

}  // namespace
}  // namespace collage
