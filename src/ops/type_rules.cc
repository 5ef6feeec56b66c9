#include "ops/type_rules.h"

#include <algorithm>

namespace collage {

Result<TensorType> tensor_arg(Types args, size_t index) {
  if (index >= args.size()) return bad_model("argument {} is missing", index);
  if (!args[index].is_tensor())
    return bad_model("argument {} is no tensor but {}", index, args[index].to_string());
  return args[index].tensor();
}

Result<std::vector<TensorType>> tuple_arg(Types args, size_t index) {
  if (index >= args.size()) return bad_model("argument {} is missing", index);
  if (!args[index].is_tuple())
    return bad_model("argument {} is no tuple but {}", index, args[index].to_string());
  std::vector<TensorType> fields;
  for (const Type& field : args[index].fields()) {
    if (!field.is_tensor()) return bad_model("a field of argument {} is no tensor", index);
    fields.push_back(field.tensor());
  }
  if (fields.empty()) return bad_model("argument {} is an empty tuple", index);
  return fields;
}

Result<Type> tensor_result(Shape shape, DType dtype) {
  int64_t count = TRY(checked_num_elements(shape));
  if (count > (int64_t{1} << 62) / static_cast<int64_t>(dtype_size(dtype)))
    return bad_model("a tensor of shape {} is too large", shape_to_string(shape));
  return Type(TensorType{std::move(shape), dtype});
}

Result<int64_t> checked_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return bad_model("axis {} is out of range for rank {}", axis, rank);
  return normal_axis(axis, rank);
}

Result<Ints> checked_axes(const Ints& axes, int64_t rank) {
  Ints result;
  for (int64_t axis : axes) result.push_back(TRY(checked_axis(axis, rank)));
  std::sort(result.begin(), result.end());
  for (size_t i = 1; i < result.size(); ++i)
    if (result[i] == result[i - 1]) return bad_model("axis {} is given twice", result[i]);
  return result;
}

Result<std::optional<Ints>> optional_ints(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = attrs.find(name);
  if (value == nullptr || std::holds_alternative<None>(*value)) return std::optional<Ints>();
  if (const auto* one = std::get_if<int64_t>(value)) return std::optional<Ints>(Ints{*one});
  if (const auto* many = std::get_if<Ints>(value)) return std::optional<Ints>(*many);
  if (const auto* lists = std::get_if<IntLists>(value); lists != nullptr && lists->empty())
    return std::optional<Ints>(Ints{});
  return bad_model("attribute '{}' is no list of integers but {}", name, attr_to_string(*value));
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t da = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    int64_t db = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (da != db && da != 1 && db != 1)
      return bad_model("shapes {} and {} do not broadcast", shape_to_string(a), shape_to_string(b));
    result[i] = da == 1 ? db : da;
  }
  return result;
}

Result<int64_t> checked_add(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return bad_model("{}: {} + {} overflows", what, a, b);
  return result;
}

Result<int64_t> checked_multiply(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return bad_model("{}: {} x {} overflows", what, a, b);
  return result;
}

Status require_rank(const TensorType& type, int64_t rank, std::string_view what) {
  if (static_cast<int64_t>(type.shape.size()) == rank) return {};
  return bad_model("{} must have rank {}, not shape {}", what, rank, shape_to_string(type.shape));
}

Status require_min_rank(const TensorType& type, int64_t rank, std::string_view what) {
  if (static_cast<int64_t>(type.shape.size()) >= rank) return {};
  return bad_model("{} must have rank {} or more, not shape {}", what, rank,
                   shape_to_string(type.shape));
}

Status require_float(const TensorType& type, std::string_view what) {
  if (is_float(type.dtype)) return {};
  return bad_model("{} must be of floating point, not {}", what, dtype_name(type.dtype));
}

Status require_integer(const TensorType& type, std::string_view what) {
  if (is_integer(type.dtype)) return {};
  return bad_model("{} must be of integers, not {}", what, dtype_name(type.dtype));
}

Status require_number(const TensorType& type, std::string_view what) {
  if (type.dtype != DType::kBool) return {};
  return bad_model("{} must be numeric, not bool", what);
}

Status require_same_dtype(const TensorType& a, const TensorType& b) {
  if (a.dtype == b.dtype) return {};
  return bad_model("element types differ: {} and {}", dtype_name(a.dtype), dtype_name(b.dtype));
}

Status require_shape(const TensorType& type, const Shape& shape, std::string_view what) {
  if (type.shape == shape) return {};
  return bad_model("{} must have shape {}, not {}", what, shape_to_string(shape),
                   shape_to_string(type.shape));
}

Status require_one_of(std::string_view value, std::initializer_list<std::string_view> allowed,
                      std::string_view what) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  return bad_model("{} '{}' is not known", what, value);
}

Result<Type> same_as_float(Types args, const Attrs&) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_float(data, "data"));
  return Type(data);
}

Result<Type> infer_along_axis(Types args, const Attrs& attrs,
                              Status (*require)(const TensorType&, std::string_view),
                              std::string_view vector_name) {
  TensorType data = TRY(tensor_arg(args, 0)), vector = TRY(tensor_arg(args, 1));
  TRY(require(data, "data"));
  TRY(require_same_dtype(data, vector));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  TRY(require_shape(vector, {data.shape[static_cast<size_t>(axis)]}, vector_name));
  return Type(data);
}

int64_t extent_product(const Shape& shape, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i) product *= shape[static_cast<size_t>(i)];
  return product;
}

}  // namespace collage
