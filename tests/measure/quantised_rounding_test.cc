// What products of quantised tensors may err by.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "networks.h"
#include "ops/registry.h"
#include "verify/rounding_error.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

// A kernel may multiply the real numbers that bytes stand for: where their sum cancels, roundings
// of the products are large beside it.
TEST(QuantisedRounding, IsThatOfProductsOfRealNumbers) {
  constexpr int64_t kRows = 16, kColumns = 12, kTerms = 40;
  constexpr float kScale = 0.013f, kWeightScale = 0.0071f;
  register_all_ops();
  const Expr x = make_var("x", TensorType{{kRows, kTerms}, DType::kUInt8});
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Tensor weights =
        synthetic_constant(TensorType{{kColumns, kTerms}, DType::kInt8}, seed).value();
    RoundingErrors errors = testing::on_trial_data(make_function(
        {x}, make_call("qnn.dense",
                       {x, make_constant(weights), make_scalar(kScale), make_scalar(int32_t{128}),
                        make_scalar(kWeightScale), make_scalar(int32_t{0})},
                       {})
                 .value()));
    const auto* data = errors.inputs()[0].data<uint8_t>();
    Tensor sums = errors.expected()[0].clone();
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < kTerms; ++k)
          sum += static_cast<float>(data[i * kTerms + k] - 128) *
                 (static_cast<float>(weights.data<int8_t>()[j * kTerms + k]) *
                  (kScale * kWeightScale));
        sums.data<float>()[i * kColumns + j] = sum;
      }
    const Difference difference = errors.compare(0, sums, {}).value();
    EXPECT_TRUE(difference.within) << seed << ": " << difference.reason;
    sums.data<float>()[seed] += 1e-2f;
    EXPECT_FALSE(errors.compare(0, sums, {}).value().within) << seed;
  }
}

}  // namespace
}  // namespace collage
