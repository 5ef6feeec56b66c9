// concatenate, stack and split: several tensors along one axis.
#include "ops/families.h"
#include "ops/strided.h"

namespace collage {

namespace {

Result<Type> infer_concatenate(Types args, const Attrs& attrs) {
  std::vector<TensorType> fields = TRY(tuple_arg(args, 0));
  Shape shape = fields[0].shape;
  auto axis = static_cast<size_t>(
      TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(shape.size()))));
  for (size_t i = 1; i < fields.size(); ++i) {
    TRY(require_same_dtype(fields[0], fields[i]));
    Shape expected = fields[0].shape;
    if (fields[i].shape.size() == expected.size()) expected[axis] = fields[i].shape[axis];
    TRY(require_shape(fields[i], expected, fmt::format("field {}", i)));
    shape[axis] = TRY(checked_add(shape[axis], fields[i].shape[axis], "concatenate"));
  }
  return tensor_result(std::move(shape), fields[0].dtype);
}

Status run_concatenate(std::span<const Tensor> inputs, const Attrs& attrs,
                       std::span<Tensor> outputs) {
  const Ints strides = dense_strides(outputs[0].shape());
  auto axis = static_cast<size_t>(normal_axis(attrs.integer("axis"), outputs[0].rank()));
  int64_t at = 0;
  for (const Tensor& in : inputs) {
    copy_strided(in.shape(), dtype_size(in.dtype()), {in.raw(), 0, dense_strides(in.shape())},
                 {outputs[0].raw(), at * strides[axis], strides});
    at += in.shape()[axis];
  }
  return {};
}

Result<Type> infer_stack(Types args, const Attrs& attrs) {
  std::vector<TensorType> fields = TRY(tuple_arg(args, 0));
  for (size_t i = 1; i < fields.size(); ++i) {
    TRY(require_same_dtype(fields[0], fields[i]));
    TRY(require_shape(fields[i], fields[0].shape, fmt::format("field {}", i)));
  }
  Shape shape = fields[0].shape;
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(shape.size()) + 1));
  shape.insert(shape.begin() + axis, static_cast<int64_t>(fields.size()));
  return tensor_result(std::move(shape), fields[0].dtype);
}

Status run_stack(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  Ints strides = dense_strides(outputs[0].shape());
  int64_t axis = normal_axis(attrs.integer("axis"), outputs[0].rank());
  const int64_t step = strides[static_cast<size_t>(axis)];
  strides.erase(strides.begin() + axis);
  for (size_t i = 0; i < inputs.size(); ++i)
    copy_strided(inputs[i].shape(), dtype_size(inputs[i].dtype()),
                 {inputs[i].raw(), 0, dense_strides(inputs[i].shape())},
                 {outputs[0].raw(), static_cast<int64_t>(i) * step, strides});
  return {};
}

// An integer cuts the axis into that many equal parts, a list names where to cut.
Result<Type> infer_split(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  auto axis = static_cast<size_t>(
      TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size()))));
  const int64_t extent = data.shape[axis];
  const AttrValue& how = *attrs.find("indices_or_sections");
  Ints extents;
  if (const auto* sections = std::get_if<int64_t>(&how)) {
    if (*sections < 1 || *sections > 65536 || extent % *sections != 0)
      return bad_model("extent {} does not divide into {} sections", extent, *sections);
    extents.assign(static_cast<size_t>(*sections), extent / *sections);
  } else {
    std::optional<Ints> points = TRY(optional_ints(attrs, "indices_or_sections"));
    if (!points) return bad_model("indices_or_sections is None");
    int64_t last = 0;
    points->push_back(extent);
    for (int64_t point : *points) {
      if (point < last || point > extent)
        return bad_model("split point {} is out of range for extent {}", point, extent);
      extents.push_back(point - last);
      last = point;
    }
  }
  std::vector<Type> parts;
  for (int64_t part : extents) {
    Shape shape = data.shape;
    shape[axis] = part;
    parts.emplace_back(TensorType{std::move(shape), data.dtype});
  }
  return Type::tuple(std::move(parts));
}

Status run_split(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  const Ints strides = dense_strides(in.shape());
  auto axis = static_cast<size_t>(normal_axis(attrs.integer("axis"), in.rank()));
  int64_t at = 0;
  for (Tensor& out : outputs) {
    gather_strided(out, in.raw(), at * strides[axis], out.shape(), strides);
    at += out.shape()[axis];
  }
  return {};
}

}  // namespace

void register_join_ops() {
  register_injective("concatenate", {{"axis", int64_t{0}}}, infer_concatenate, run_concatenate);
  register_injective("stack", {{"axis", int64_t{0}}}, infer_stack, run_stack);
  register_injective("split", {{"indices_or_sections", None{}, true}, {"axis", int64_t{0}}},
                     infer_split, run_split);
}

}  // namespace collage
