// Constants, what is constant once shapes are static (Shape, Size, Range, ConstantOfShape), and
// the identity.
#include <cmath>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

Result<Expr> convert_constant(NodeContext& node) {
  if (node.has_attr("value")) {
    node.make_narrow(node.narrow_tensor_type("value"));
    return node.constant_of(TRY(node.tensor("value")));
  }
  if (node.has_attr("value_float"))
    return node.constant_of(
        Tensor::scalar<float>(static_cast<float>(TRY(node.real("value_float")))));
  if (node.has_attr("value_int"))
    return node.constant_of(Tensor::scalar<int64_t>(TRY(node.integer("value_int"))));
  if (node.has_attr("value_ints")) {
    const Ints values = TRY(node.ints("value_ints"));
    return node.constant_of(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  if (node.has_attr("value_floats")) {
    const std::vector<double> values = TRY(node.reals("value_floats"));
    return node.constant_of(
        Tensor::from<float>({static_cast<int64_t>(values.size())}, {values.begin(), values.end()}));
  }
  for (const char* name : {"value_string", "value_strings"})
    if (node.has_attr(name)) return unsupported("strings");
  if (node.has_attr("sparse_value")) return unsupported("a sparse constant");
  return bad_model("no value");
}

Result<Expr> convert_constant_of_shape(NodeContext& node) {
  const Ints shape = TRY(node.constant_ints(0, "shape"));
  TRY(check_computed_shape(shape));
  Tensor value = Tensor::scalar<float>(0);
  if (node.has_attr("value")) {
    node.make_narrow(node.narrow_tensor_type("value"));
    value = TRY(node.tensor("value"));
  }
  if (value.size() != 1) return bad_model("value has {} elements, not 1", value.size());
  return node.call("full", {node.constant_of(value.reshaped({}))}, {{"shape", shape}});
}

Result<Expr> convert_shape(NodeContext& node) {
  const int64_t rank = node.rank(0);
  auto clamp = [&](int64_t value) {
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const int64_t start = clamp(TRY(node.integer("start", 0)));
  const int64_t end = std::max(start, clamp(TRY(node.integer("end", rank))));
  const Expr whole = TRY(node.call("shape_of", {node.in(0)}));
  if (end - start == rank) return whole;
  return node.call("strided_slice", {whole}, {{"begin", Ints{start}}, {"end", Ints{end}}});
}

Result<Expr> convert_size(NodeContext& node) {
  return node.call("prod", {TRY(node.call("shape_of", {node.in(0)}))},
                   {{"axis", Ints{0}}, {"keepdims", false}});
}

Result<Expr> convert_range(NodeContext& node) {
  double values[3];
  for (size_t i = 0; i < 3; ++i) {
    static constexpr const char* kNames[] = {"start", "limit", "delta"};
    Tensor value = TRY(node.constant(i, kNames[i]));
    if (value.size() != 1) return bad_model("{} is no single value", kNames[i]);
    values[i] = value.element_as_double(0);
  }
  const auto [start, limit, delta] = values;
  if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
    return bad_model("range from {} to {} by {}", start, limit, delta);
  const double exact = std::max(0.0, std::ceil((limit - start) / delta));
  if (exact > static_cast<double>(kMaxFoldedIntegers))
    return bad_model("range of {} elements, the limit is {}", exact, kMaxFoldedIntegers);
  const int64_t count = static_cast<int64_t>(exact);
  const DType dtype = node.dtype(0);
  const bool narrow = is_float(dtype) && dtype_size(dtype) < 4;  // which counts to 2048 or less
  const DType computed = narrow ? DType::kFloat64 : dtype;
  const auto number = [&](size_t i) -> Result<Expr> {
    return node.cast(TRY(node.reshape(node.in(i), {})), computed);
  };
  const Expr index = TRY(node.arange(count));
  const Expr steps = TRY(node.call("multiply", {TRY(node.cast(index, computed)), TRY(number(2))}));
  return node.cast(TRY(node.call("add", {steps, TRY(number(0))})), dtype);
}

Result<Expr> convert_eye_like(NodeContext& node) {
  if (node.rank(0) != 2) return bad_model("data of rank {}, not 2", node.rank(0));
  const int64_t rows = node.shape(0)[0], columns = node.shape(0)[1];
  const DType dtype = node.has_attr("dtype") ? TRY(node.element_type("dtype")) : node.dtype(0);
  const int64_t k = TRY(node.integer("k", 0));
  if (rows * columns > kMaxFoldedIntegers)
    return unsupported("an identity matrix of {} elements", rows * columns);
  Tensor values = Tensor::zeros(DType::kInt64, {rows, columns});
  for (int64_t row = 0; row < rows; ++row)
    if (k >= -row && k < columns - row) values.data<int64_t>()[row * columns + row + k] = 1;
  return node.cast(node.constant_of(values), dtype);
}

}  // namespace

ConverterRows constant_converters() {
  return {
      {"Constant", 0, 0, single(convert_constant)},
      {"ConstantOfShape", 1, 1, single(convert_constant_of_shape)},
      {"EyeLike", 1, 1, single(convert_eye_like)},
      {"Identity", 1, 1, single([](NodeContext& node) -> Result<Expr> { return node.in(0); })},
      // A value of a tensor's type is there, where the node names it.
      {"OptionalGetElement", 1, 1,
       single([](NodeContext& node) -> Result<Expr> { return node.in(0); })},
      {"OptionalHasElement", 0, 1, single([](NodeContext& node) -> Result<Expr> {
         return node.constant_of(Tensor::scalar<bool>(node.has(0)));
       })},
      {"Range", 3, 3, single(convert_range)},
      {"Shape", 1, 1, single(convert_shape)},
      {"Size", 1, 1, single(convert_size)},
  };
}

}  // namespace collage::frontend
