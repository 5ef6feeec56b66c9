// Views: reshape, squeeze, expand_dims, nn.batch_flatten. They rename the elements in row-major
// order and move nothing; the kernel copies only where a caller insists on an output of its own.
// And shape_of, whose result the type of its argument tells.
#include <algorithm>
#include <cstring>

#include "ops/families.h"

namespace collage {

namespace {

Status copy_elements(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  if (inputs[0].bytes() > 0) std::memcpy(outputs[0].raw(), inputs[0].raw(), inputs[0].bytes());
  return {};
}

Result<Type> infer_reshape(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  const Ints& shape = attrs.ints("newshape");
  if (TRY(checked_num_elements(shape)) != num_elements(data.shape))
    return bad_model("{} cannot take the shape {}", shape_to_string(data.shape),
                     shape_to_string(shape));
  return tensor_result(shape, data.dtype);
}

Result<Type> infer_squeeze(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  std::optional<Ints> axes = TRY(optional_ints(attrs, "axis"));
  auto rank = static_cast<int64_t>(data.shape.size());
  std::vector<bool> drop(data.shape.size(), false);
  if (axes) {
    for (int64_t axis : TRY(checked_axes(*axes, rank))) {
      auto i = static_cast<size_t>(axis);
      if (data.shape[i] != 1) return bad_model("axis {} has extent {}, not 1", axis, data.shape[i]);
      drop[i] = true;
    }
  } else {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = data.shape[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i]) shape.push_back(data.shape[i]);
  return Type(TensorType{std::move(shape), data.dtype});
}

Result<Type> infer_expand_dims(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  int64_t count = attrs.integer("num_newaxis");
  if (count < 0 || count > 64) return bad_model("num_newaxis {} is out of range", count);
  auto rank = static_cast<int64_t>(data.shape.size());
  int64_t axis = attrs.integer("axis");
  if (axis < -rank - 1 || axis > rank)
    return bad_model("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank + 1;
  data.shape.insert(data.shape.begin() + axis, static_cast<size_t>(count), 1);
  return Type(data);
}

Result<Type> infer_batch_flatten(Types args, const Attrs&) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_min_rank(data, 1, "data"));
  // Of an empty tensor the product of the other extents may be large: checked.
  int64_t rest = TRY(checked_num_elements({data.shape.begin() + 1, data.shape.end()}));
  return tensor_result({data.shape[0], rest}, data.dtype);
}

Result<Type> infer_shape_of(Types args, const Attrs&) {
  const TensorType data = TRY(tensor_arg(args, 0));
  return tensor_result({static_cast<int64_t>(data.shape.size())}, DType::kInt64);
}

Status run_shape_of(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  std::copy(inputs[0].shape().begin(), inputs[0].shape().end(), outputs[0].data<int64_t>());
  return {};
}

void view(std::string name, std::vector<AttrSpec> attrs, TypeRule infer_type) {
  OpDef op = make_op(std::move(name), 1, std::move(attrs), FusionKind::kInjective,
                     std::move(infer_type), copy_elements, no_work);
  op.is_view = true;
  register_op(std::move(op));
}

}  // namespace

void register_view_ops() {
  view("reshape", {{"newshape", Ints{}, true}}, infer_reshape);
  view("squeeze", {{"axis", None{}}}, infer_squeeze);
  view("expand_dims", {{"axis", int64_t{0}, true}, {"num_newaxis", int64_t{1}}}, infer_expand_dims);
  view("nn.batch_flatten", {}, infer_batch_flatten);
  register_op(
      make_op("shape_of", 1, {}, FusionKind::kOpaque, infer_shape_of, run_shape_of, no_work));
}

}  // namespace collage
