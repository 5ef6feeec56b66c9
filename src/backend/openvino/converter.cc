#include "backend/openvino/converter.h"

#include <numeric>
#include <openvino/op/reshape.hpp>

namespace collage::openvino {

CallView::CallView(const CallNode& call, const ov::OutputVector& inputs)
    : call(call), attrs(call.attrs), inputs_(inputs) {
  for (const Expr& arg : call.args)
    for (const TensorType& leaf : arg->type().leaves()) types_.push_back(leaf);
  results_ = call.type().leaves();
}

bool CallView::is_constant(size_t index) const {
  return ov::is_type<ov::op::v0::Constant>(inputs_[index].get_node());
}

int64_t CallView::axis(std::string_view name, int64_t rank) const {
  int64_t axis = attrs.integer(name);
  return axis < 0 ? axis + rank : axis;
}

Ints CallView::axes(std::string_view name, int64_t rank) const {
  Ints result;
  if (attrs.is_none(name)) {
    result.resize(static_cast<size_t>(rank));
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  const AttrValue* value = attrs.find(name);
  if (const auto* single = std::get_if<int64_t>(value)) {
    result = {*single};
  } else {
    result = std::get<Ints>(*value);
  }
  for (int64_t& axis : result)
    if (axis < 0) axis += rank;
  return result;
}

Value ints(const Ints& values) {
  return make<ov::op::v0::Constant>(ov::element::i64, ov::Shape{values.size()}, values);
}

Value int_scalar(int64_t value) {
  return make<ov::op::v0::Constant>(ov::element::i64, ov::Shape{}, std::vector<int64_t>{value});
}

Value scalar(double value, const Value& like) {
  return make<ov::op::v0::Constant>(like.get_element_type(), ov::Shape{},
                                    std::vector<double>{value});
}

Value reshaped(const Value& value, const Shape& shape) {
  ov::Shape wanted(shape.begin(), shape.end());
  if (value.get_shape() == wanted) return value;
  if (auto constant = ov::as_type_ptr<ov::op::v0::Constant>(value.get_node_shared_ptr()))
    return make<ov::op::v0::Constant>(*constant, wanted);
  return make<ov::op::v1::Reshape>(value, ints(shape), false);
}

Value along_axis(const Value& value, int64_t axis, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(ov::shape_size(value.get_shape()));
  return reshaped(value, shape);
}

ov::element::Type element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ov::element::f32;
    case DType::kInt32:
      return ov::element::i32;
    case DType::kInt64:
      return ov::element::i64;
    case DType::kInt8:
      return ov::element::i8;
    case DType::kUInt8:
      return ov::element::u8;
    case DType::kBool:
      return ov::element::boolean;
    default:
      return ov::element::dynamic;
  }
}

}  // namespace collage::openvino
