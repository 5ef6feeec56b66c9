// Kernels that call a function of a library as a stage: registered here under the labels that
// native knows, so that no library is needed.
#include "tensor_program/external.h"

#include "backend/native/native_backend.h"
#include "check.h"

namespace collage::native {
namespace {

using tensor_program::register_external;

int calls = 0, calls_with_bias = 0;
// Of a kernel by check_function: four, one of its twin, and one for each input with a NaN.
constexpr int kRuns = 6;

/// C = A · B or A · Bᵀ, plus a vector.
Status multiply(std::span<const DLTensor> inputs, const DLTensor& to, bool transposed) {
  ++calls;
  if (inputs.size() == 3) ++calls_with_bias;
  const auto* a = static_cast<const float*>(inputs[0].data);
  const auto* b = static_cast<const float*>(inputs[1].data);
  auto* c = static_cast<float*>(to.data);
  const int64_t m = to.shape[0], n = to.shape[1], k = inputs[0].shape[1];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = inputs.size() == 3
                       ? static_cast<double>(static_cast<const float*>(inputs[2].data)[j])
                       : 0;
      for (int64_t r = 0; r < k; ++r)
        sum += static_cast<double>(a[i * k + r]) *
               static_cast<double>(transposed ? b[j * k + r] : b[r * n + j]);
      c[i * n + j] = static_cast<float>(sum);
    }
  return {};
}

class ExternalStage : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto type = [](std::span<const TensorType>) -> Result<TensorType> {
      return unsupported("asked for by the evaluator only");
    };
    for (bool transposed : {false, true})
      register_external(
          transposed ? "cblas_sgemm_nt" : "cblas_sgemm", type,
          [=](auto inputs, const DLTensor& to) { return multiply(inputs, to, transposed); });
    calls = calls_with_bias = 0;
  }
  const CheckOptions external_{.target_options = {{"external", "on"}}};
};

TEST_F(ExternalStage, IsOfferedOnlyWhereAskedFor) {
  const Expr x = var("x", {9, 20});
  const Function f = function({x}, call("nn.dense", {x, weights({33, 20})}));
  check_function(f);
  EXPECT_EQ(calls, 0);
  check_function(f, external_);
  EXPECT_EQ(calls, kRuns);
}

TEST_F(ExternalStage, TakesTheBiasAndLeavesTheRest) {
  const Expr x = var("x", {9, 20}), r = var("r", {9, 33});
  const Expr y = call("nn.bias_add", {call("nn.dense", {x, weights({33, 20})}), weights({33})},
                      {{"axis", int64_t{-1}}});
  check_function(function({x, r}, call("nn.gelu", {call("add", {y, r})})), external_);
  EXPECT_EQ(calls_with_bias, kRuns + 1);
}

TEST_F(ExternalStage, ComputesOperandsThatAreExpressions) {
  const Expr x = var("x", {20, 16}), y = var("y", {16, 24});
  const Expr a = call("nn.relu", {x}), b = call("exp", {y});
  check_function(function({x, y}, call("nn.matmul", {a, b})), external_);
  EXPECT_EQ(calls, kRuns + 1);
  check_function(
      function({x, y}, call("nn.matmul", {b, a}, {{"transpose_a", true}, {"transpose_b", true}})),
      external_);
  EXPECT_EQ(calls, 2 * (kRuns + 1));
}

TEST_F(ExternalStage, AnActivationThatReadsTheProductTwice) {
  const Expr x = var("x", {3, 5, 64});
  const Expr y = call("nn.matmul", {x, weights({64, 48})});
  check_function(function({x}, call("multiply", {y, call("sigmoid", {y})})), external_);
  EXPECT_EQ(calls, kRuns);
}

TEST_F(ExternalStage, AloneKeepsAKernelFromBeingSaved) {
  const Expr x = var("x", {9, 20});
  const Function f = function({x}, call("nn.dense", {x, weights({33, 20})}));
  const std::unique_ptr<Backend> backend = make_native_backend();
  const Target target{"native", external_.target_options, {}};
  const auto variants = backend->variants(f, target, {2, ""});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  int saved = 0, refused = 0;
  for (const Variant& variant : *variants) {
    auto kernel = backend->compile(f, variant, target, {2, ""});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    const bool external = variant.name.find("cblas_sgemm") != std::string::npos;
    EXPECT_EQ((*kernel)->save().ok(), !external) << variant.to_string();
    ++(external ? refused : saved);
  }
  EXPECT_GE(saved, 1);
  EXPECT_GE(refused, 1);
}

}  // namespace
}  // namespace collage::native
