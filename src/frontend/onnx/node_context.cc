#include "frontend/onnx/node_context.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "frontend/onnx/limits.h"

namespace collage::frontend {

using ::onnx::AttributeProto;

Result<const NarrowType*> NodeContext::narrow_element_type(std::string_view name) const {
  const int64_t value = TRY(integer(name, 0));
  if (value < 0 || value > INT32_MAX) return bad_model("attribute '{}' is {}", name, value);
  return narrow_type(static_cast<int32_t>(value));
}

const NarrowType* NodeContext::narrow_tensor_type(std::string_view name) const {
  for (const AttributeProto& attribute : proto_.attribute())
    if (attribute.name() == name) return narrow_type(attribute.t().data_type());
  return nullptr;
}

Result<Tensor> NodeContext::tensor(std::string_view name) {
  const auto* attribute = TRY(find(name, AttributeProto::TENSOR, true));
  // The message is ours to take the data from; a node is converted once.
  return data_.take(*const_cast<AttributeProto*>(attribute)->mutable_t());
}

Result<Tensor> NodeContext::constant(size_t i, std::string_view what) const {
  const Tensor* known = folder_.value(inputs_[i]);
  if (known == nullptr) {
    if (wanted_ != nullptr) wanted_->push_back(inputs_[i]);
    return unsupported("{} is computed at run time; only a constant is supported", what);
  }
  return *known;
}

Result<Ints> NodeContext::constant_ints(size_t i, std::string_view what) const {
  Tensor value = TRY(constant(i, what));
  if (value.rank() > 1 || !is_integer(value.dtype()))
    return bad_model("{} is a {} of shape {}, not a list of integers", what,
                     dtype_name(value.dtype()), shape_to_string(value.shape()));
  if (value.size() > static_cast<int64_t>(kMaxAttributeLength))
    return bad_model("{} has {} elements, the limit is {}", what, value.size(),
                     kMaxAttributeLength);
  Ints result(static_cast<size_t>(value.size()));
  for (size_t k = 0; k < result.size(); ++k)
    result[k] = value.element_as_int64(static_cast<int64_t>(k));
  return result;
}

Result<std::vector<double>> NodeContext::constant_reals(size_t i, std::string_view what) const {
  Tensor value = TRY(constant(i, what));
  if (value.rank() > 1 || value.size() > static_cast<int64_t>(kMaxAttributeLength))
    return bad_model("{} has shape {}; a list is expected", what, shape_to_string(value.shape()));
  std::vector<double> result(static_cast<size_t>(value.size()));
  for (size_t k = 0; k < result.size(); ++k)
    result[k] = value.element_as_double(static_cast<int64_t>(k));
  return result;
}

Result<std::optional<Ints>> NodeContext::ints_from(size_t input, std::string_view attribute) const {
  if (has(input)) return std::optional<Ints>(TRY(constant_ints(input, attribute)));
  if (has_attr(attribute)) return std::optional<Ints>(TRY(ints(attribute)));
  return std::optional<Ints>();
}

Result<Expr> NodeContext::call(std::string_view op, std::vector<Expr> args, Attrs attrs) {
  Expr made = TRY(make_call(op, std::move(args), std::move(attrs), origin_));
  for (const TensorType& leaf : made->type().leaves()) TRY(check_computed_shape(leaf.shape));
  return folder_.fold(std::move(made));
}

bool NodeContext::count_anew(const Expr& scalar) {
  const Tensor* value = known(scalar);
  if (value == nullptr) return true;
  const RunSizes::Size size = folder_.run_sizes()->of(scalar, value->element_as_int64(0));
  // What else reads it has this size too.
  if (!size.symbol.empty()) folder_.know(scalar, Tensor::scalar<int64_t>(size.size));
  return !size.symbol.empty();
}

Result<Expr> NodeContext::first_of(const Expr& data, const Expr& count, int64_t axis) {
  RunSizes* const sizes = folder_.run_sizes();
  const Tensor* value = known(count);
  if (value == nullptr && sizes == nullptr)
    return unsupported("the shape of the result depends on values");
  const bool is_counted = value == nullptr || (sizes != nullptr && sizes->has(count));
  const RunSizes::Size size =
      is_counted ? sizes->of(count, std::nullopt) : RunSizes::Size{"", value->element_as_int64(0)};
  return call("match_size", {data, count},
              {{"axis", axis}, {"size", size.size}, {"symbol", size.symbol}});
}

Expr NodeContext::item(const Expr& tuple, int64_t index) const {
  if (const auto* fields = as<TupleNode>(tuple)) return fields->fields[static_cast<size_t>(index)];
  return *make_tuple_get_item(tuple, index);
}

Result<Expr> NodeContext::scalar(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return constant_of(Tensor::scalar<float>(static_cast<float>(value)));
    case DType::kFloat64:
      return constant_of(Tensor::scalar<double>(value));
    case DType::kInt32:
      return constant_of(Tensor::scalar<int32_t>(static_cast<int32_t>(value)));
    case DType::kInt64:
      return constant_of(Tensor::scalar<int64_t>(static_cast<int64_t>(value)));
    case DType::kBool:
      return constant_of(Tensor::scalar<bool>(value != 0));
    default:
      return call("cast", {constant_of(Tensor::scalar<double>(value))}, {{"dtype", dtype}});
  }
}

Result<Expr> NodeContext::full(DType dtype, const Shape& shape, double value) {
  TRY(check_computed_shape(shape));
  return call("full", {TRY(scalar(dtype, value))}, {{"shape", shape}});
}

// Calls of the count alone, which may be a term over sizes.
Result<Expr> NodeContext::arange(int64_t count, int64_t first) {
  const int64_t end = first + count;
  if (end > kMaxFoldedIntegers)
    return unsupported("{} positions, the limit is {}", end, kMaxFoldedIntegers);
  const Expr all = TRY(call("cumsum", {TRY(full(DType::kInt64, {end}, 1))},
                            {{"axis", int64_t{0}}, {"exclusive", true}}));
  if (first == 0) return all;
  return call("strided_slice", {all}, {{"begin", Ints{first}}, {"end", Ints{end}}});
}

Result<Expr> NodeContext::reshape(const Expr& data, Shape shape) {
  if (shape_of(data) == shape) return data;
  return call("reshape", {data}, {{"newshape", std::move(shape)}});
}

Result<Expr> NodeContext::transpose(const Expr& data, const Ints& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return data;
  return call("transpose", {data}, {{"axes", axes}});
}

Result<Expr> NodeContext::cast(const Expr& data, DType dtype) {
  if (dtype_of(data) == dtype) return data;
  return call("cast", {data}, {{"dtype", dtype}});
}

Result<Expr> NodeContext::broadcast_to(const Expr& data, const Shape& shape) {
  if (shape_of(data) == shape) return data;
  return call("broadcast_to", {data}, {{"shape", shape}});
}

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

Status check_computed_shape(const Shape& shape) {
  if (static_cast<int64_t>(shape.size()) > kMaxRank)
    return bad_model("a result has rank {}, the limit is {}", shape.size(), kMaxRank);
  Result<int64_t> count = checked_num_elements(shape);
  if (!count) return count.status();
  if (*count > kMaxElements)
    return bad_model("a result of shape {} has {} elements, the limit is {}",
                     shape_to_string(shape), *count, kMaxElements);
  return {};
}

}  // namespace collage::frontend
