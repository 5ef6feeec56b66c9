// Models of float16 and bfloat16: imported in their own types, whatever computes them later.
#include "ops/half.h"

#include "frontend/onnx/model_builder.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;

class Half : public ::testing::TestWithParam<DType> {
 protected:
  static int32_t type() {
    return GetParam() == DType::kFloat16 ? TensorProto::FLOAT16 : TensorProto::BFLOAT16;
  }
  static Tensor halves(Shape shape, const std::vector<float>& values) {
    Tensor tensor = Tensor::empty(GetParam(), std::move(shape));
    for (size_t i = 0; i < values.size(); ++i)
      tensor.data<uint16_t>()[i] = float_to_half(values[i], GetParam());
    return tensor;
  }
};

TEST_P(Half, InputsWeightsAndResultsKeepTheirTypes) {
  ModelBuilder m;
  m.input("x", {"1", "2"}, type());
  m.constant("w", halves({2, 3}, {1, 2, 3, 4, 5, 6}));
  m.constant("b", halves({3}, {0.5f, -100, 0}));
  m.node("Gemm", {"x", "w", "b"}, {"a"});
  m.node("Relu", {"a"}, {"y"});
  m.output("y", type());
  const Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  for (const Expr& node : post_order(model->module.main()->body))
    EXPECT_EQ(node->tensor_type().dtype, GetParam());
  EXPECT_EQ(model->weight_bytes, 18U);
  const Tensor y = m.run({halves({1, 2}, {2, 0.25f})})[0];
  EXPECT_EQ(y.dtype(), GetParam());
  expect_values(y, {1, 3}, {3.5, 0, 7.5});
}

// As converters leave them that keep inputs and outputs in float32.
TEST_P(Half, CastsAtTheEndsOfAModel) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.constant("c", halves({2}, {3, 0.5f}));
  m.node("Cast", {"x"}, {"a"}).integer("to", type());
  m.node("Mul", {"a", "c"}, {"b"});
  m.node("Cast", {"b"}, {"y"}).integer("to", TensorProto::FLOAT);
  m.output("y", TensorProto::FLOAT);
  EXPECT_THAT(m.ops(), ElementsAre("cast", "multiply", "cast"));
  expect_values(m.run({floats({2}, {1.5f, -4})})[0], {2}, {4.5, -2});
}

INSTANTIATE_TEST_SUITE_P(Types, Half, ::testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace collage
