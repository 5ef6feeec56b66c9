// What simplify_quantised tells of the weights of quantised products.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/registry.h"
#include "passes/simplify_quantised.h"

namespace collage {
namespace {

// The attribute after the pass, of a product with one weight of that value among zeros, that
// claimed to have weights of so many bits.
int64_t bits_told(int64_t value, DType dtype, int64_t claimed) {
  register_all_ops();
  Tensor weights = Tensor::zeros(dtype, {4, 8});
  weights.data<int8_t>()[13] = static_cast<int8_t>(value);
  const Expr x = make_var("x", TensorType{{2, 8}, DType::kUInt8});
  const Expr product =
      make_call("qnn.dense",
                {x, make_constant(weights), make_scalar(0.1f), make_scalar(int32_t{3}),
                 make_scalar(0.1f), make_scalar(int32_t{0})},
                {{"weight_bits", claimed}})
          .value();
  const Function simplified = simplify_quantised(make_function({x}, product)).value();
  return as<CallNode>(simplified->body)->attrs.integer("weight_bits");
}

TEST(WeightBits, FollowFromTheWeights) {
  for (const int64_t claimed : {8, 7}) {
    EXPECT_EQ(bits_told(64, DType::kInt8, claimed), 7);
    EXPECT_EQ(bits_told(-64, DType::kInt8, claimed), 7);
    EXPECT_EQ(bits_told(65, DType::kInt8, claimed), 8);
    EXPECT_EQ(bits_told(-65, DType::kInt8, claimed), 8);
    EXPECT_EQ(bits_told(-128, DType::kInt8, claimed), 8);
  }
  EXPECT_EQ(bits_told(3, DType::kUInt8, 8), 8) << "instructions want signed ones";
}

// Of weights that are computed nothing is known but what the model says.
TEST(WeightBits, AreKeptWhereWeightsAreNoConstants) {
  register_all_ops();
  const Expr x = make_var("x", TensorType{{2, 8}, DType::kUInt8});
  const Expr y = make_var("y", TensorType{{8, 4}, DType::kInt8});
  const Expr product = make_call("qnn.matmul",
                                 {x, y, make_scalar(0.1f), make_scalar(int32_t{3}),
                                  make_scalar(0.1f), make_scalar(int32_t{0})},
                                 {{"weight_bits", int64_t{7}}})
                           .value();
  const Function f = make_function({x, y}, product);
  EXPECT_EQ(simplify_quantised(f).value(), f);
}

}  // namespace
}  // namespace collage
