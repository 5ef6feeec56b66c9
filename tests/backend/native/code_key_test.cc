// Functions that differ in values of constants alone share code, unless the code follows from them.
#include <gtest/gtest.h>

#include <thread>

#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/native_backend.h"
#include "base/processor.h"
#include "check.h"

namespace collage::native {
namespace {

/// All variants compiled; their code stays for who asks for the same.
std::vector<std::unique_ptr<Kernel>> compiled(const Function& function,
                                              std::vector<std::string> features = {}) {
  const std::unique_ptr<Backend> native = make_native_backend();
  const Target target{"native", {}, {}};
  std::vector<std::unique_ptr<Kernel>> kernels;
  const auto variants = native->variants(function, target, CompileOptions{2, ""});
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  for (const Variant& variant : variants.value()) {
    CompileOptions options{2, ""};
    options.features = features;
    auto kernel = native->compile(function, variant, target, options);
    EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
    kernels.push_back(std::move(kernel).value());
  }
  return kernels;
}

Expr scalar(int64_t value) { return make_constant(Tensor::from<int64_t>({}, {value})); }

TEST(CodeKey, WholeScalarsThatAreOneAsReals) {
  const Expr x = var("x", {20}, DType::kInt64);
  constexpr int64_t kLarge = int64_t{1} << 53;
  const auto kept = compiled(function({x}, call("add", {x, scalar(kLarge)})));
  check_with_inputs(function({x}, call("add", {x, scalar(kLarge + 1)})),
                    {Tensor::from<int64_t>({20}, std::vector<int64_t>(20, -kLarge))},
                    {.tolerance = 0});
}

TEST(CodeTarget, OfThisProcessorsFeaturesIsTheHosts) {
  Halide::Target host = Halide::get_host_target();
  host.processor_tune = Halide::Target::ProcessorGeneric;
  host.set_feature(Halide::Target::AVX512_Zen5, false);
  EXPECT_EQ(target_with(processor_features()).to_string(), host.to_string());
}

TEST(CodeTarget, IsAssumedByThisThreadUntilItGoes) {
  const Halide::Target here = kernel_target();
  const int width = vector_width();
  {
    const AssumedTarget narrow({"sse4.2", "avx", "avx2", "fma"});
    EXPECT_FALSE(kernel_target().has_feature(Halide::Target::AVX512));
    EXPECT_EQ(vector_width(), 8);
    int elsewhere = 0;
    std::thread([&] { elsewhere = vector_width(); }).join();
    EXPECT_EQ(elsewhere, width);
  }
  EXPECT_EQ(kernel_target().to_string(), here.to_string());
  EXPECT_EQ(vector_width(), width);
}

// Code for one processor is not given to who compiles for another.
TEST(CodeTarget, IsPartOfTheKey) {
  const Expr x = var("x", {64, 64}, DType::kFloat32);
  const Function tanh = function({x}, call("tanh", {x}));
  const auto here = compiled(tanh);
  const int64_t before = compiled_kernels();
  const auto again = compiled(tanh);
  EXPECT_EQ(compiled_kernels(), before);
  const auto narrow = compiled(tanh, {"sse4.2", "avx", "avx2", "fma"});
  EXPECT_GT(compiled_kernels(), before);
}

// How results become bytes follows from how large the sums may be, and so from the weights.
TEST(CodeKey, MagnitudesOfWeights) {
  const Expr x = var("x", {9, 24}, DType::kUInt8);
  const auto product = [&](float weight) {
    Tensor weights = Tensor::empty(DType::kFloat32, {32, 24});
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.data<float>()[i] = static_cast<float>(i % 5 - 2) * weight;
    const Expr real = call("qnn.dequantize", {x, make_scalar(0.05f), make_scalar(int32_t{3})});
    const Expr sum = call("nn.dense", {real, make_constant(weights)});
    return function({x}, call("qnn.quantize", {sum, make_scalar(0.5f), make_scalar(int32_t{100})},
                              {{"out_dtype", std::string("uint8")}}));
  };
  const Function small = product(0.01f), large = product(1e20f);
  const auto kept = compiled(small);
  check_function(large, {.tolerance = 0});
  // As large ones have code in common.
  const auto also_kept = compiled(large);
  const int64_t before = compiled_kernels();
  compiled(product(2e20f));
  EXPECT_EQ(compiled_kernels(), before);
}

// How many pairs groups of weights make follows from their values.
TEST(CodeKey, PairsOfWeights) {
  const Expr x = var("x", {9, 64}, DType::kUInt8);
  const auto product = [&](int weight) {
    Tensor weights = Tensor::empty(DType::kInt8, {32, 64});
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.data<int8_t>()[i] = static_cast<int8_t>(i % 3 == 0 ? -weight : weight);
    return function({x}, call("qnn.dense",
                              {x, make_constant(weights), make_scalar(0.02f),
                               make_scalar(int32_t{3}), make_scalar(0.1f), make_scalar(int32_t{0})},
                              {{"weight_bits", int64_t{7}}}));
  };
  const auto kept = compiled(product(32));
  check_function(product(64));
}

// Of users' programs too.
TEST(CodeKey, MagnitudesOfTables) {
  const Expr x = var("x", {6, 40}, DType::kUInt8);
  const auto scaled = [&](float scale) {
    Tensor scales = Tensor::empty(DType::kFloat32, {40});
    for (int64_t i = 0; i < 40; ++i) scales.data<float>()[i] = static_cast<float>(i - 20) * scale;
    const std::string text = R"(program {
      param A: uint8[6, 40];
      param S: float32[40];
      result Y[i:6, j:40] = int32(max(min(float32(A[i, j]) * S[j], 255.0f), 0.0f));
    })";
    return function({x}, program_call({x, make_constant(scales)}, text));
  };
  const auto kept = compiled(scaled(0.01f));
  check_function(scaled(1e20f), {.tolerance = 0});
}

}  // namespace
}  // namespace collage::native
