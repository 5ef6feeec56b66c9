// Regions of quantised operators: the same numbers as the interpreter's, and kernels of 8 bits.
#include <gmock/gmock.h>

#include "backend/openvino/kernels/openvino_kernel.h"
#include "backend/openvino/run.h"
#include "backend/openvino/translate.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage::test {
namespace {

Expr bytes(const std::string& name, Shape shape, DType dtype = DType::kUInt8) {
  register_all_ops();
  return make_var(name, TensorType{std::move(shape), dtype});
}
Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> made = make_call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.value();
}
Tensor byte_values(const TensorType& type) {
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  auto* data = static_cast<uint8_t*>(tensor.raw());
  for (int64_t i = 0; i < tensor.size(); ++i) data[i] = static_cast<uint8_t>(i * 37 % 251);
  return tensor;
}
// Of as many bits as the processor multiplies exactly with uint8.
int64_t weight_bits() { return openvino::has_exact_int8() ? 8 : 7; }
Expr byte_weights(Shape shape) {
  Tensor values = byte_values({std::move(shape), DType::kInt8});
  if (weight_bits() == 7)
    for (int64_t i = 0; i < values.size(); ++i) values.data<int8_t>()[i] /= 2;
  return make_constant(values);
}
Expr scales(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(0.002F + 0.0001F * static_cast<float>(i));
  return make_constant(Tensor::from<float>({count}, values));
}
Expr zeros(int64_t count) {
  const std::vector<int32_t> values(static_cast<size_t>(count), 0);
  return make_constant(Tensor::from<int32_t>({count}, values));
}
Expr real(const Expr& x, float scale, int32_t zero_point) {
  return call("qnn.dequantize", {x, make_scalar(scale), make_scalar(zero_point)});
}
Expr quantised(const Expr& x, float scale, int32_t zero_point, const std::string& to) {
  return call("qnn.quantize", {x, make_scalar(scale), make_scalar(zero_point)},
              {{"out_dtype", to}});
}
Expr conv(const Expr& x, int64_t channels, int64_t groups, int32_t zero_point, int64_t kernel = 3,
          int64_t stride = 1) {
  const int64_t in = x->tensor_type().shape[1] / groups;
  return call("qnn.conv2d",
              {x, byte_weights({channels, in, kernel, kernel}), make_scalar(0.02F),
               make_scalar(zero_point), scales(channels), zeros(channels)},
              {{"padding", Ints(4, kernel / 2)},
               {"strides", Ints(2, stride)},
               {"groups", groups},
               {"weight_bits", weight_bits()}});
}

// "brgconv_avx512_I8" or "…_i8" and the like, of the nodes of one kind in the compiled function.
std::vector<std::string> implementations(const Function& function, const std::string& kind) {
  auto translation = openvino::translate(function);
  EXPECT_TRUE(translation.ok()) << translation.status().to_string();
  ov::Core* core = openvino::shared_core().value();
  ov::CompiledModel compiled = core->compile_model(translation->model, "CPU",
                                                   openvino::compile_settings(ov::element::f32, 2));
  std::vector<std::string> found;
  for (const auto& node : compiled.get_runtime_model()->get_ops()) {
    const auto& info = node->get_rt_info();
    if (info.at("layerType").as<std::string>() == kind)
      found.push_back(info.at("primitiveType").as<std::string>());
  }
  return found;
}

void expect_values(const Function& function) {
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params) inputs.push_back(byte_values(param->tensor_type()));
  auto expected = interpret(function, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  auto actual = run_openvino(function, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().to_string();
  for (size_t i = 0; i < expected->size(); ++i)
    EXPECT_EQ(difference((*actual)[i], (*expected)[i]), "") << "result " << i;
}

TEST(Quantised, ConvolutionsBetweenBytesAreKernelsOfBytes) {
  for (auto [dtype, zero_point] :
       {std::pair{DType::kUInt8, 0}, std::pair{DType::kUInt8, 117}, std::pair{DType::kInt8, 0}})
    for (int64_t groups : {1, 32}) {
      if (dtype == DType::kInt8 && !openvino::has_exact_int8()) continue;
      SCOPED_TRACE(fmt::format("{} around {}, {} groups", dtype_name(dtype), zero_point, groups));
      const Expr x = bytes("x", {1, 32, 14, 14}, dtype);
      const Expr y = call("nn.relu", {conv(x, 32, groups, zero_point)});
      const Function f = make_function({x}, quantised(y, 0.5F, 0, "uint8"));
      expect_values(f);
      EXPECT_THAT(implementations(f, "Convolution"),
                  ::testing::ElementsAre(::testing::MatchesRegex(".*[iI]8")));
    }
}

TEST(Quantised, PointwiseConvolutionsWithStrides) {
  const Expr x = bytes("x", {3, 24, 8, 8});
  const Function f = make_function({x}, quantised(conv(x, 48, 1, 117, 1, 2), 0.5F, 0, "uint8"));
  for (int i = 0; i < 20; ++i) expect_values(f);
}

TEST(Quantised, AResidualBlock) {
  const Expr x = bytes("x", {1, 32, 14, 14});
  const Expr first = quantised(call("nn.relu", {conv(x, 32, 1, 0)}), 0.5F, 0, "uint8");
  const Expr second = conv(first, 32, 1, 0);
  const Expr sum = call("nn.relu", {call("add", {second, real(x, 0.02F, 0)})});
  const Function f = make_function({x}, quantised(sum, 2.0F, 0, "uint8"));
  expect_values(f);
  EXPECT_THAT(implementations(f, "Convolution"),
              ::testing::Each(::testing::MatchesRegex(".*[iI]8")));
}

TEST(Quantised, ProductsAreKernelsOfBytes) {
  const DType dtype = openvino::has_exact_int8() ? DType::kInt8 : DType::kUInt8;
  const Expr x = bytes("x", {5, 64}, dtype);
  const Expr y = call("qnn.dense",
                      {x, byte_weights({48, 64}), make_scalar(0.02F), make_scalar(int32_t{0}),
                       scales(48), zeros(48)},
                      {{"weight_bits", weight_bits()}});
  expect_values(make_function({x}, y));
  const Function f = make_function({x}, quantised(y, 0.2F, 3, "int8"));
  expect_values(f);
  EXPECT_THAT(implementations(f, "FullyConnected"),
              ::testing::ElementsAre(::testing::MatchesRegex(".*[iI]8")));
}

// Of which many are in the middle of two integers.
TEST(QuantisedChains, AreRefusedWithoutAProduct) {
  const Expr a = bytes("a", {1, 20, 9, 8}), b = bytes("b", {1, 20, 9, 8}, DType::kInt8);
  const Expr sum = call("nn.relu", {call("add", {real(a, 0.05F, 3), real(b, 0.1F, -5)})});
  const Function f = make_function({a, b}, quantised(sum, 0.071F, 0, "uint8"));
  EXPECT_FALSE(openvino_backend().variants(f, Target{"openvino", {}, {}}, {2, ""}).ok());
}

}  // namespace
}  // namespace collage::test
