#include "frontend/onnx/operators/quantisation.h"

#include <string>
#include <utility>

namespace collage::frontend {

Result<QuantisationParameters> quantisation_parameters(NodeContext& node, size_t scale,
                                                       size_t zero_point) {
  if (!node.has(scale)) return bad_model("input {}, a scale, is missing", scale);
  if (!is_float(node.dtype(scale)))
    return bad_model("input {}, a scale, is {}", scale, dtype_name(node.dtype(scale)));
  // A tensor's only scale may be a list of one.
  const Shape shape = node.shape(scale) == Shape{1} ? Shape{} : node.shape(scale);
  QuantisationParameters parameters;
  parameters.scale = TRY(node.reshape(TRY(node.cast(node.in(scale), DType::kFloat32)), shape));
  if (!node.has(zero_point)) {
    TRY(check_computed_shape(shape));
    parameters.zero_point = node.constant_of(Tensor::zeros(DType::kInt32, shape));
    return parameters;
  }
  if (!is_integer(node.dtype(zero_point)))
    return bad_model("input {}, a zero point, is {}", zero_point,
                     dtype_name(node.dtype(zero_point)));
  if (num_elements(node.shape(zero_point)) != num_elements(shape))
    return bad_model("a scale of shape {} and a zero point of shape {}",
                     shape_to_string(node.shape(scale)), shape_to_string(node.shape(zero_point)));
  parameters.zero_point =
      TRY(node.reshape(TRY(node.cast(node.in(zero_point), DType::kInt32)), shape));
  return parameters;
}

Status check_zero_point(NodeContext& node, size_t zero_point, DType integers) {
  if (!node.has(zero_point) || node.dtype(zero_point) == integers) return {};
  return bad_model("data of {} and a zero point of {}", dtype_name(integers),
                   dtype_name(node.dtype(zero_point)));
}

namespace {

// Those of a whole tensor.
Result<QuantisationParameters> single_parameters(NodeContext& node, size_t scale,
                                                 size_t zero_point) {
  QuantisationParameters parameters = TRY(quantisation_parameters(node, scale, zero_point));
  if (rank_of(parameters.scale) > 0)
    return bad_model("input {}, a scale, has shape {}, not one element", scale,
                     shape_to_string(node.shape(scale)));
  return parameters;
}

}  // namespace

Result<Expr> dequantised(NodeContext& node, const QuantisedInput& input,
                         std::optional<int64_t> axis) {
  if (!node.has(input.data)) return bad_model("input {} is missing", input.data);
  TRY(check_zero_point(node, input.zero_point, node.dtype(input.data)));
  const QuantisationParameters by =
      axis ? TRY(quantisation_parameters(node, input.scale, input.zero_point))
           : TRY(single_parameters(node, input.scale, input.zero_point));
  return node.call("qnn.dequantize", {node.in(input.data), by.scale, by.zero_point},
                   {{"axis", axis.value_or(-1)}});
}

Result<Expr> quantised(NodeContext& node, const Expr& real, const QuantisationParameters& by,
                       DType to, int64_t axis) {
  return node.call("qnn.quantize", {TRY(node.cast(real, DType::kFloat32)), by.scale, by.zero_point},
                   {{"axis", axis}, {"out_dtype", std::string(dtype_name(to))}});
}

Result<Expr> quantised(NodeContext& node, const Expr& real, size_t scale, size_t zero_point,
                       DType fallback) {
  const QuantisationParameters by = TRY(single_parameters(node, scale, zero_point));
  return quantised(node, real, by, node.has(zero_point) ? node.dtype(zero_point) : fallback);
}

Result<Expr> dequantised_bias(NodeContext& node, const Expr& bias, const Expr& scale_a,
                              const Expr& scale_b, double factor, int64_t axis) {
  if (dtype_of(bias) != DType::kInt32) return bad_model("a bias of {}", dtype_name(dtype_of(bias)));
  Expr scale = TRY(node.call("multiply", {scale_a, scale_b}));
  if (factor != 1)
    scale = TRY(node.call("multiply", {scale, TRY(node.scalar(DType::kFloat32, factor))}));
  Expr zero = node.constant_of(Tensor::zeros(DType::kInt32, shape_of(scale)));
  return node.call("qnn.dequantize", {bias, std::move(scale), std::move(zero)}, {{"axis", axis}});
}

// scale = (most - least) / 255 and zero point = round(-least / scale), where 0 lies between the
// least and the most. As ONNX Runtime does, data of zeros alone has scale 1.
Result<DynamicallyQuantised> dynamically_quantised(NodeContext& node, const Expr& real) {
  if (dtype_of(real) != DType::kFloat32) return bad_model("data of {}", dtype_name(dtype_of(real)));
  if (num_elements(shape_of(real)) == 0) return unsupported("data without elements");
  const auto extreme = [&](const char* reduce, const char* choose) -> Result<Expr> {
    Expr of_all = real;
    if (rank_of(real) > 0) of_all = TRY(node.call(reduce, {real}, {{"axis", None{}}}));
    return node.call(choose, {of_all, TRY(node.scalar(DType::kFloat32, 0))});
  };
  const Expr most = TRY(extreme("max", "maximum")), least = TRY(extreme("min", "minimum"));
  const Expr range = TRY(node.call("subtract", {most, least}));
  const Expr steps = TRY(node.scalar(DType::kFloat32, 255));
  const Expr none = TRY(node.call("equal", {range, TRY(node.scalar(DType::kFloat32, 0))}));
  DynamicallyQuantised result;
  result.scale = TRY(node.call("where", {none, TRY(node.scalar(DType::kFloat32, 1)),
                                         TRY(node.call("divide", {range, steps}))}));
  Expr zero = TRY(node.call("negative", {TRY(node.call("divide", {least, result.scale}))}));
  zero =
      TRY(node.call("round", {TRY(node.call("clip", {zero}, {{"a_min", 0.0}, {"a_max", 255.0}}))}));
  result.zero_point = TRY(node.cast(zero, DType::kInt32));
  result.data = TRY(quantised(node, real, {result.scale, result.zero_point}, DType::kUInt8));
  return result;
}

Result<Expr> as_standard(NodeContext& node, const char* op, std::vector<Expr> inputs) {
  NodeContext real = node.with_inputs(std::move(inputs));
  const Outputs outputs = TRY(find_converter("", op)->convert(real));
  return outputs[0];
}

}  // namespace collage::frontend
