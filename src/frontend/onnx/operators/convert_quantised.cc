// Quantised types in the standard domain: conversions, and products of integers. With block_size a
// scale stands for a block of elements along the axis; then weights become real numbers while
// importing, and anything else is computed element by element.
#include <algorithm>
#include <limits>

#include "base/integers.h"
#include "frontend/onnx/narrowing.h"
#include "frontend/onnx/operators/quantisation.h"
#include "runtime/dispatch.h"

namespace collage::frontend {

namespace {

// Where a tensor's scales lie: along an axis, one for so many elements (0: for each, or one for
// all).
struct Blocks {
  int64_t axis = -1, size = 0;
};

Result<Blocks> read_blocks(NodeContext& node) {
  Blocks blocks{TRY(node.integer("axis", 1)), TRY(node.integer("block_size", 0))};
  if (blocks.size < 0) return bad_model("block_size {}", blocks.size);
  const Shape &data = node.shape(0), &scale = node.shape(1);
  if (blocks.size == 0 && scale.size() > 1)
    return bad_model("a scale of shape {} without block_size", shape_to_string(scale));
  // Of a tensor's only scale the axis says nothing.
  if (blocks.size == 0 && num_elements(scale) == 1) return Blocks{-1, 0};
  blocks.axis = TRY(normal_axis(blocks.axis, node.rank(0)));
  if (blocks.size == 0) return blocks;
  const auto at = static_cast<size_t>(blocks.axis);
  blocks.size = std::min(blocks.size, std::max<int64_t>(1, data[at]));
  Shape expected = data;
  expected[at] = ceil_div(data[at], blocks.size);
  if (scale != expected)
    return bad_model("a scale of shape {}, not {}, for blocks of {}", shape_to_string(scale),
                     shape_to_string(expected), blocks.size);
  // One block of a vector is the whole tensor.
  return scale == Shape{1} ? Blocks{-1, 0} : blocks;
}

// One value for each element of the data.
Result<Expr> spread(NodeContext& node, const Expr& values, const Blocks& blocks) {
  Expr each = TRY(node.call("repeat", {values}, {{"repeats", blocks.size}, {"axis", blocks.axis}}));
  const int64_t extent = node.shape(0)[static_cast<size_t>(blocks.axis)];
  if (shape_of(each) == node.shape(0)) return each;
  return node.call("strided_slice", {each},
                   {{"begin", Ints{0}},
                    {"end", Ints{extent}},
                    {"strides", Ints{1}},
                    {"axes", Ints{blocks.axis}}});
}

// (data - zero point) * scale of constants.
Result<Expr> dequantised_constant(NodeContext& node, const Tensor& data, const Tensor& scale,
                                  const Tensor& zero, const Blocks& blocks) {
  const auto at = static_cast<size_t>(blocks.axis);
  const int64_t inner = product(data.shape(), at + 1, data.shape().size());
  const int64_t extent = data.shape()[at], rows = scale.shape()[at];
  Tensor result = TRY(Tensor::allocate(DType::kFloat32, data.shape()));
  const auto* scales = scale.data<float>();
  const auto* zeros = zero.data<int32_t>();
  auto* to = result.data<float>();
  dispatch_integer(data.dtype(), [&]<typename T>(Tag<T>) {
    const T* from = data.data<T>();
    const int64_t n = data.size();
#pragma omp parallel for schedule(static) if (n > 8192)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t block = i / inner % extent / blocks.size;
      const int64_t k = (i / inner / extent * rows + block) * inner + i % inner;
      to[i] = static_cast<float>(static_cast<int64_t>(from[i]) - zeros[k]) * scales[k];
    }
  });
  return node.constant_of(std::move(result));
}

Result<Expr> dequantised_blocks(NodeContext& node, const Blocks& blocks) {
  if (!is_integer(node.dtype(0)) || dtype_size(node.dtype(0)) > 4)
    return bad_model("data is {}", dtype_name(node.dtype(0)));
  TRY(check_zero_point(node, 2, node.dtype(0)));
  const QuantisationParameters by = TRY(quantisation_parameters(node, 1, 2));
  const auto* data = as<ConstantNode>(node.in(0));
  const auto* scale = as<ConstantNode>(by.scale);
  const auto* zero = as<ConstantNode>(by.zero_point);
  if (data != nullptr && scale != nullptr && zero != nullptr)
    return dequantised_constant(node, data->value, scale->value, zero->value, blocks);
  const Expr zeros = TRY(spread(node, by.zero_point, blocks));
  const Expr steps = TRY(node.call("subtract", {TRY(node.cast(node.in(0), DType::kInt32)), zeros}));
  return node.call("multiply",
                   {TRY(node.cast(steps, DType::kFloat32)), TRY(spread(node, by.scale, blocks))});
}

Result<Expr> quantised_blocks(NodeContext& node, DType to, const Blocks& blocks) {
  const QuantisationParameters by = TRY(quantisation_parameters(node, 1, 2));
  double low = 0, high = 0;
  dispatch_integer(to, [&]<typename T>(Tag<T>) {
    low = static_cast<double>(std::numeric_limits<T>::min());
    high = static_cast<double>(std::numeric_limits<T>::max());
  });
  Expr steps = TRY(node.call("divide", {TRY(node.cast(node.in(0), DType::kFloat32)),
                                        TRY(spread(node, by.scale, blocks))}));
  // A NaN becomes the zero point, as qnn.quantize has it.
  steps = TRY(node.call(
      "where", {TRY(node.call("isnan", {steps})), TRY(node.scalar_like(steps, 0)), steps}));
  Expr zeros = TRY(node.cast(TRY(spread(node, by.zero_point, blocks)), DType::kFloat32));
  Expr shifted = TRY(node.call("add", {TRY(node.call("round", {steps})), zeros}));
  return node.cast(TRY(node.call("clip", {shifted}, {{"a_min", low}, {"a_max", high}})), to);
}

// The data by its scale, for a type of which QuantizeLinear is a cast of what comes out.
Result<Expr> by_scale(NodeContext& node, const char* op, const Expr& data, const Blocks& blocks) {
  Expr scale = TRY(node.cast(node.in(1), DType::kFloat32));
  if (blocks.size > 0) {
    scale = TRY(spread(node, scale, blocks));
  } else if (num_elements(shape_of(scale)) == 1) {
    scale = TRY(node.reshape(scale, {}));
  } else {
    Shape shape(static_cast<size_t>(node.rank(0)), 1);
    shape[static_cast<size_t>(blocks.axis)] = num_elements(shape_of(scale));
    scale = TRY(node.reshape(scale, std::move(shape)));
  }
  Expr result = TRY(node.call(op, {TRY(node.cast(data, DType::kFloat32)), scale}));
  if (shape_of(result) != node.shape(0))
    return bad_model("a scale of shape {} for data of shape {}", shape_to_string(node.shape(1)),
                     shape_to_string(node.shape(0)));
  return result;
}

// Zero points of floats are zeros: the standard says so, and it is checked where they are known.
Status check_zero_point_of_floats(NodeContext& node) {
  if (!node.has(2)) return {};
  const auto* zero = as<ConstantNode>(node.in(2));
  if (zero == nullptr) return {};
  for (int64_t i = 0; i < zero->value.size(); ++i)
    if (zero->value.element_as_double(i) != 0)
      return bad_model("a zero point of floats that is not 0");
  return {};
}

Result<Expr> quantised_narrow(NodeContext& node, const NarrowType& to) {
  node.make_narrow(&to);
  const Blocks blocks = TRY(read_blocks(node));
  if (to.is_float()) {
    TRY(check_zero_point_of_floats(node));
    return narrowed(node, TRY(by_scale(node, "divide", node.in(0), blocks)), to,
                    {TRY(node.flag("saturate", true))});
  }
  const Expr wide = blocks.size > 0
                        ? TRY(quantised_blocks(node, to.carrier, blocks))
                        : TRY(quantised(node, node.in(0), TRY(quantisation_parameters(node, 1, 2)),
                                        to.carrier, blocks.axis));
  const double span = 1 << to.bits, least = to.is_signed() ? -span / 2 : 0;
  return node.call("clip", {wide}, {{"a_min", least}, {"a_max", least + span - 1}});
}

// Attributes that name an element type, where 0 stands for none.
Result<std::optional<DType>> chosen_type(NodeContext& node) {
  if (TRY(node.integer("output_dtype", 0)) == 0) return std::optional<DType>();
  return std::optional<DType>(TRY(node.element_type("output_dtype")));
}

// The type of the result where it is a narrow one; null where not.
Result<const NarrowType*> chosen_narrow_type(NodeContext& node) {
  const NarrowType* chosen = TRY(node.narrow_element_type("output_dtype"));
  const NarrowType* of_zero_point = node.narrow(2);
  if (chosen != nullptr && node.has(2) && chosen != of_zero_point)
    return bad_model("output_dtype and the zero point's type differ");
  return chosen != nullptr ? chosen : of_zero_point;
}

Result<Expr> convert_quantize(NodeContext& node) {
  if (const NarrowType* to = TRY(chosen_narrow_type(node))) return quantised_narrow(node, *to);
  const std::optional<DType> chosen = TRY(chosen_type(node));
  DType to = chosen.value_or(DType::kUInt8);
  if (node.has(2)) {
    to = node.dtype(2);
    if (chosen && *chosen != to)
      return bad_model("output_dtype {} and a zero point of {}", dtype_name(*chosen),
                       dtype_name(to));
  }
  if (!is_integer(to)) return unsupported("quantised type {}", dtype_name(to));
  const Blocks blocks = TRY(read_blocks(node));
  if (blocks.size > 0) return quantised_blocks(node, to, blocks);
  return quantised(node, node.in(0), TRY(quantisation_parameters(node, 1, 2)), to, blocks.axis);
}

Result<Expr> convert_dequantize(NodeContext& node) {
  const DType to = TRY(chosen_type(node)).value_or(node.dtype(1));
  const Blocks blocks = TRY(read_blocks(node));
  if (node.narrow(0) != nullptr && node.narrow(0)->is_float()) {
    TRY(check_zero_point_of_floats(node));
    return node.cast(TRY(by_scale(node, "multiply", node.in(0), blocks)), to);
  }
  Expr real = blocks.size > 0 ? TRY(dequantised_blocks(node, blocks))
                              : TRY(dequantised(node, {0, 1, 2}, blocks.axis));
  return node.cast(real, to);
}

Result<Outputs> convert_dynamic_quantize(NodeContext& node) {
  const DynamicallyQuantised made = TRY(dynamically_quantised(node, node.in(0)));
  return Outputs{made.data, made.scale, TRY(node.cast(made.zero_point, DType::kUInt8))};
}

Result<Expr> convert_qlinear_conv(NodeContext& node) {
  const Expr data = TRY(dequantised(node, {0, 1, 2}));
  const Expr weight = TRY(dequantised(node, {3, 4, 5}, 0));
  Expr bias;
  if (node.has(8))
    bias = TRY(dequantised_bias(node, node.in(8), TRY(quantisation_parameters(node, 1, 2)).scale,
                                TRY(quantisation_parameters(node, 4, 5)).scale, 1, 0));
  return quantised(node, TRY(as_standard(node, "Conv", {data, weight, bias})), 6, 7, node.dtype(0));
}

Result<Expr> convert_qlinear_matmul(NodeContext& node) {
  // The standard says of which axis the operands' scales are, not the result's.
  if (num_elements(node.shape(6)) > 1)
    return unsupported("a result with scales of shape {}", shape_to_string(node.shape(6)));
  const Expr a = TRY(dequantised(node, {0, 1, 2}, node.rank(0) < 2 ? -1 : -2));
  const Expr b = TRY(dequantised(node, {3, 4, 5}, -1));
  return quantised(node, TRY(as_standard(node, "MatMul", {a, b})), 6, 7, node.dtype(0));
}

// The differences to zero points that lie along an axis, in a wider type.
Result<Expr> centred(NodeContext& node, size_t data, size_t zero_point, DType wide, int64_t axis) {
  if (node.dtype(data) != DType::kInt8 && node.dtype(data) != DType::kUInt8)
    return bad_model("input {} is {}", data, dtype_name(node.dtype(data)));
  Expr result = TRY(node.cast(node.in(data), wide));
  if (!node.has(zero_point)) return result;
  Expr zero = TRY(node.cast(node.in(zero_point), wide));
  if (rank_of(zero) == 1 && num_elements(shape_of(zero)) > 1) {
    Shape shape(static_cast<size_t>(node.rank(data)), 1);
    shape[static_cast<size_t>(TRY(normal_axis(axis, node.rank(data))))] = shape_of(zero)[0];
    zero = TRY(node.reshape(zero, std::move(shape)));
  } else if (num_elements(shape_of(zero)) == 1) {
    zero = TRY(node.reshape(zero, {}));
  }
  result = TRY(node.call("subtract", {result, zero}));
  if (shape_of(result) != node.shape(data))
    return bad_model("a zero point of shape {} for data of shape {}",
                     shape_to_string(node.shape(zero_point)), shape_to_string(node.shape(data)));
  return result;
}

// Sums of products of bytes are exact in double.
Result<Expr> convert_conv_integer(NodeContext& node) {
  const Expr data = TRY(centred(node, 0, 2, DType::kFloat64, 1));
  const Expr weight = TRY(centred(node, 1, 3, DType::kFloat64, 0));
  return node.cast(TRY(as_standard(node, "Conv", {data, weight})), DType::kInt32);
}

Result<Expr> convert_matmul_integer(NodeContext& node) {
  const Expr a = TRY(centred(node, 0, 2, DType::kInt32, node.rank(0) < 2 ? -1 : -2));
  const Expr b = TRY(centred(node, 1, 3, DType::kInt32, -1));
  return as_standard(node, "MatMul", {a, b});
}

}  // namespace

ConverterRows quantised_converters() {
  return {
      {"ConvInteger", 2, 4, single(convert_conv_integer)},
      {"DequantizeLinear", 2, 3, single(convert_dequantize)},
      {"DynamicQuantizeLinear", 1, 1, convert_dynamic_quantize},
      {"MatMulInteger", 2, 4, single(convert_matmul_integer)},
      {"QLinearConv", 8, 9, single(convert_qlinear_conv)},
      {"QLinearMatMul", 8, 8, single(convert_qlinear_matmul)},
      {"QuantizeLinear", 2, 3, single(convert_quantize)},
  };
}

}  // namespace collage::frontend
