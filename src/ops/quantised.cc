// Operators of quantised models, in which an integer q stands for the real number
// scale * (q - zero point):
//
//   qnn.quantize(x, scale, zero_point)       float32 to integers
//   qnn.dequantize(q, scale, zero_point)     and back
//   qnn.conv1d/2d/3d, qnn.dense, qnn.matmul  (q, r, q's scale and zero point, r's): the float32
//                                            product of what bytes stand for
//
// A scale is float32, its zero point int32; both are scalars, or vectors along an axis of their
// operand: for quantize and dequantize the attribute `axis`, for r the axis that gives the result's
// channels; q has scalars. Products have the attributes and shape rules of their counterparts
// nn.*, whose kernels sum the integers in double, which is exact, and `weight_bits` (quantised.h).
#include "ops/quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "ops/families.h"
#include "ops/window.h"

namespace collage {

namespace {

Status require_quantised(const TensorType& type, std::string_view what) {
  if (is_quantised_type(type.dtype)) return {};
  return bad_model("{} must be of integers of 8, 16 or signed 32 bits, not {}", what,
                   dtype_name(type.dtype));
}

Status require_bytes(const TensorType& type, std::string_view what) {
  if (type.dtype == DType::kInt8 || type.dtype == DType::kUInt8) return {};
  return bad_model("{} must be int8 or uint8, not {}", what, dtype_name(type.dtype));
}

// Arguments `first` and `first` + 1 are a scale and a zero point: scalars, or vectors of that
// extent where there is one.
Status require_parameters(Types args, size_t first, std::optional<int64_t> extent) {
  TensorType scale = TRY(tensor_arg(args, first)), zero = TRY(tensor_arg(args, first + 1));
  if (scale.dtype != DType::kFloat32)
    return bad_model("a scale must be float32, not {}", dtype_name(scale.dtype));
  if (zero.dtype != DType::kInt32)
    return bad_model("a zero point must be int32, not {}", dtype_name(zero.dtype));
  TRY(require_shape(zero, scale.shape, "a zero point"));
  return scale.shape.empty() || !extent ? require_shape(scale, {}, "a scale")
                                        : require_shape(scale, {*extent}, "a scale");
}

Status require_parameters_along_axis(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), scale = TRY(tensor_arg(args, 1));
  if (scale.shape.empty()) return require_parameters(args, 1, std::nullopt);
  const int64_t axis =
      TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  return require_parameters(args, 1, data.shape[static_cast<size_t>(axis)]);
}

Result<Type> infer_quantize(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  if (data.dtype != DType::kFloat32)
    return bad_model("data must be float32, not {}", dtype_name(data.dtype));
  const Result<DType> to = parse_dtype(attrs.string("out_dtype"));
  if (!to) return bad_model("out_dtype '{}' is not known", attrs.string("out_dtype"));
  TRY(require_quantised({data.shape, *to}, "the result"));
  TRY(require_parameters_along_axis(args, attrs));
  return tensor_result(std::move(data.shape), *to);
}

Result<Type> infer_dequantize(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_quantised(data, "data"));
  TRY(require_parameters_along_axis(args, attrs));
  return tensor_result(std::move(data.shape), DType::kFloat32);
}

// f(i, channel) for every element of a tensor of that shape. `channels` of them lie along the axis;
// with one the axis does not matter.
template <typename F>
void for_each_element(const Shape& shape, int64_t axis, int64_t channels, F f) {
  const int64_t n = num_elements(shape);
  if (channels == 1) {
#pragma omp parallel for schedule(static) if (n > 8192)
    for (int64_t i = 0; i < n; ++i) f(i, int64_t{0});
    return;
  }
  const int64_t inner = extent_product(shape, axis + 1, static_cast<int64_t>(shape.size()));
#pragma omp parallel for schedule(static) if (n > 8192)
  for (int64_t i = 0; i < n; ++i) f(i, i / inner % channels);
}

// The axis of data along which the vectors lie; any for scalars.
int64_t axis_of(const Tensor& data, const Attrs& attrs) {
  return normal_axis(attrs.integer("axis"), data.rank());
}

template <typename To>
To quantised(float x, float scale, int32_t zero) {
  using Limits = std::numeric_limits<To>;
  const double steps = std::nearbyint(static_cast<double>(x / scale));
  const double value = (std::isnan(steps) ? 0.0 : steps) + zero;
  return static_cast<To>(
      std::clamp(value, static_cast<double>(Limits::min()), static_cast<double>(Limits::max())));
}

Status run_quantize(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const auto* x = inputs[0].data<float>();
  const auto* scale = inputs[1].data<float>();
  const auto* zero = inputs[2].data<int32_t>();
  dispatch_integer(outputs[0].dtype(), [&]<typename To>(Tag<To>) {
    To* y = outputs[0].data<To>();
    for_each_element(inputs[0].shape(), axis_of(inputs[0], attrs), inputs[1].size(),
                     [=](int64_t i, int64_t c) { y[i] = quantised<To>(x[i], scale[c], zero[c]); });
  });
  return {};
}

Status run_dequantize(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  const auto* scale = inputs[1].data<float>();
  const auto* zero = inputs[2].data<int32_t>();
  auto* y = outputs[0].data<float>();
  dispatch_integer(inputs[0].dtype(), [&]<typename From>(Tag<From>) {
    const From* x = inputs[0].data<From>();
    for_each_element(inputs[0].shape(), axis_of(inputs[0], attrs), inputs[1].size(),
                     [=](int64_t i, int64_t c) {
                       const int64_t steps = static_cast<int64_t>(x[i]) - zero[c];
                       y[i] = static_cast<float>(steps) * scale[c];
                     });
  });
  return {};
}

// The axis of the right operand that gives the result's channels, and where the result has them.
int64_t channels_of_operand(const Attrs& attrs, int64_t rank) {
  if (!attrs.has("transpose_b")) return 0;
  return attrs.flag("transpose_b") ? rank - 2 : rank - 1;
}
int64_t channels_of_result(const OpDef& counterpart, int64_t rank) {
  return counterpart.name.starts_with("nn.conv") ? 1 : rank - 1;
}

Result<Type> infer_product(const OpDef& counterpart, Types args, const Attrs& attrs) {
  TensorType a = TRY(tensor_arg(args, 0)), b = TRY(tensor_arg(args, 1));
  TRY(require_bytes(a, "the left operand"));
  TRY(require_bytes(b, "the right operand"));
  const int64_t bits = attrs.integer(kWeightBits);
  if (bits != 8 && !(bits == 7 && b.dtype == DType::kInt8))
    return bad_model("weight_bits must be 8, or 7 of int8, not {} of {}", bits,
                     dtype_name(b.dtype));
  const Type real[] = {TensorType{a.shape, DType::kFloat32}, TensorType{b.shape, DType::kFloat32}};
  Type result = TRY(counterpart.infer_type(real, attrs));
  TRY(require_parameters(args, 2, std::nullopt));
  const int64_t axis = channels_of_operand(attrs, static_cast<int64_t>(b.shape.size()));
  TRY(require_parameters(args, 4, b.shape[static_cast<size_t>(axis)]));
  return result;
}

// The differences of integers and their zero points.
Result<Tensor> centred(const Tensor& data, const Tensor& zero_point, int64_t axis) {
  Tensor result = TRY(Tensor::allocate(DType::kFloat64, data.shape()));
  const auto* zero = zero_point.data<int32_t>();
  auto* y = result.data<double>();
  dispatch_integer(data.dtype(), [&]<typename From>(Tag<From>) {
    const From* x = data.data<From>();
    for_each_element(data.shape(), axis, zero_point.size(),
                     [=](int64_t i, int64_t c) { y[i] = static_cast<double>(x[i]) - zero[c]; });
  });
  return result;
}

Status run_product(const OpDef& counterpart, std::span<const Tensor> inputs, const Attrs& attrs,
                   std::span<Tensor> outputs) {
  Tensor& out = outputs[0];
  if (out.size() == 0) return {};
  const Tensor operands[] = {
      TRY(centred(inputs[0], inputs[3], 0)),
      TRY(centred(inputs[1], inputs[5], channels_of_operand(attrs, inputs[1].rank())))};
  Tensor sums[] = {TRY(Tensor::allocate(DType::kFloat64, out.shape()))};
  TRY(counterpart.reference(operands, attrs, sums));
  const auto* sum = sums[0].data<double>();
  const double scale = inputs[2].data<float>()[0];
  const auto* scales = inputs[4].data<float>();
  auto* y = out.data<float>();
  for_each_element(out.shape(), channels_of_result(counterpart, out.rank()), inputs[4].size(),
                   [=](int64_t i, int64_t c) {  // the product of two floats is exact
                     y[i] = static_cast<float>(scale * scales[c] * sum[i]);
                   });
  return {};
}

void register_product(const std::string& name) {
  const OpDef& counterpart = *find_op(name.substr(1));
  std::vector<AttrSpec> attrs = counterpart.attrs;
  attrs.push_back({std::string(kWeightBits), int64_t{8}});
  register_op(make_op(
      name, 6, std::move(attrs), FusionKind::kAnchor,
      [&counterpart](Types args, const Attrs& attrs) {
        return infer_product(counterpart, args, attrs);
      },
      [&counterpart](std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
        return run_product(counterpart, inputs, attrs, outputs);
      },
      counterpart.flops));
}

}  // namespace

bool is_quantised_product(std::string_view op) {
  return op.starts_with("qnn.conv") || op == "qnn.dense" || op == "qnn.matmul";
}

Result<Tensor> typical_products(const CallNode& product, std::span<const Tensor> arguments) {
  const OpDef& counterpart = *find_op(product.op->name.substr(1));
  const Shape& shape = product.tensor_type().shape;
  const int64_t axis = channels_of_operand(product.attrs, arguments[1].rank());
  const int64_t channels = arguments[1].shape()[static_cast<size_t>(axis)];
  const Tensor data = TRY(centred(arguments[0], arguments[3], 0)),
               weights = TRY(centred(arguments[1], arguments[5], axis));
  double data_squares = 0;
  for (int64_t i = 0; i < data.size(); ++i) data_squares += std::pow(data.data<double>()[i], 2);
  std::vector<double> squares(static_cast<size_t>(channels), 0);
  const int64_t inner = extent_product(weights.shape(), axis + 1, weights.rank());
  for (int64_t i = 0; i < weights.size(); ++i)
    squares[static_cast<size_t>(i / inner % channels)] += std::pow(weights.data<double>()[i], 2);
  const double mean = data_squares / static_cast<double>(data.size()) *
                      static_cast<double>(channels) / static_cast<double>(weights.size());
  const double scale = arguments[2].data<float>()[0];
  const Tensor& scales = arguments[4];
  Tensor sizes = TRY(Tensor::allocate(DType::kFloat64, shape));
  auto* size = sizes.data<double>();
  for_each_element(shape, channels_of_result(counterpart, sizes.rank()), channels,
                   [&, size](int64_t i, int64_t c) {
                     const double own = scales.data<float>()[scales.size() == 1 ? 0 : c];
                     size[i] =
                         std::abs(scale * own) * std::sqrt(mean * squares[static_cast<size_t>(c)]);
                   });
  return sizes;
}

bool has_weights_of_7_bits(const Attrs& attrs) { return attrs.integer(kWeightBits) == 7; }

bool has_exact_pairs(const CallNode& product) {
  return has_weights_of_7_bits(product.attrs) &&
         product.args[0]->tensor_type().dtype == DType::kUInt8;
}

bool is_narrow_quantised_type(DType dtype) { return is_integer(dtype) && dtype_size(dtype) <= 2; }
bool is_quantised_type(DType dtype) {
  return is_narrow_quantised_type(dtype) || dtype == DType::kInt32;
}

// After the products of real numbers.
void register_quantised_ops() {
  register_op(make_op("qnn.quantize", 3,
                      {{"axis", int64_t{-1}}, {"out_dtype", std::string("int8")}},
                      FusionKind::kElementwise, infer_quantize, run_quantize));
  register_op(make_op("qnn.dequantize", 3, {{"axis", int64_t{-1}}}, FusionKind::kElementwise,
                      infer_dequantize, run_dequantize));
  for (size_t spatial = 1; spatial <= 3; ++spatial)
    register_product(spatial_name("qnn.conv", spatial));
  register_product("qnn.dense");
  register_product("qnn.matmul");
}

}  // namespace collage
