// Injective operators that read one tensor through other strides: transpose, strided_slice,
// reverse, tile, repeat, broadcast_to, depth_to_space and space_to_depth. Joining and splitting
// stand in join.cc.
#include "ops/rearrange.h"

#include <algorithm>

#include "ops/families.h"
#include "ops/strided.h"

namespace collage {

namespace {

Result<Type> infer_transpose(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  std::optional<Ints> axes = TRY(optional_ints(attrs, "axes"));
  auto rank = static_cast<int64_t>(data.shape.size());
  if (!axes) {
    std::reverse(data.shape.begin(), data.shape.end());
    return Type(data);
  }
  if (static_cast<int64_t>(axes->size()) != rank)
    return bad_model("{} axes for rank {}", axes->size(), rank);
  TRY(checked_axes(*axes, rank));
  Shape shape;
  for (int64_t axis : *axes)
    shape.push_back(data.shape[static_cast<size_t>(normal_axis(axis, rank))]);
  return Type(TensorType{std::move(shape), data.dtype});
}

Status run_transpose(std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  std::optional<Ints> axes = TRY(optional_ints(attrs, "axes"));
  Ints dense = dense_strides(in.shape()), strides;
  for (size_t i = 0; i < dense.size(); ++i)
    strides.push_back(dense[axes ? static_cast<size_t>(normal_axis((*axes)[i], in.rank()))
                                 : dense.size() - 1 - i]);
  gather_strided(outputs[0], in.raw(), 0, outputs[0].shape(), strides);
  return {};
}

Result<Type> infer_slice(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  for (const SliceRange& range : TRY(slice_ranges(data.shape, attrs)))
    data.shape[static_cast<size_t>(range.axis)] = range.count;
  return Type(data);
}

Status run_slice(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  Ints strides = dense_strides(inputs[0].shape());
  int64_t offset = 0;
  if (outputs[0].size() == 0) return {};
  for (const SliceRange& range : TRY(slice_ranges(inputs[0].shape(), attrs))) {
    auto i = static_cast<size_t>(range.axis);
    offset += range.begin * strides[i];
    strides[i] *= range.count > 1 ? range.step : 1;
  }
  gather_strided(outputs[0], inputs[0].raw(), offset, outputs[0].shape(), strides);
  return {};
}

Result<Type> infer_reverse(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(checked_axes(attrs.ints("axis"), static_cast<int64_t>(data.shape.size())));
  return Type(data);
}

Status run_reverse(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  Ints strides = dense_strides(in.shape());
  int64_t offset = 0;
  for (int64_t axis : attrs.ints("axis")) {
    auto i = static_cast<size_t>(normal_axis(axis, in.rank()));
    offset += (in.shape()[i] - 1) * strides[i];
    strides[i] = -strides[i];
  }
  gather_strided(outputs[0], in.raw(), offset, in.shape(), strides);
  return {};
}

// numpy's: the shorter of shape and repetitions gets leading ones.
Result<Type> infer_tile(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  Ints reps = attrs.ints("reps");
  while (reps.size() < data.shape.size()) reps.insert(reps.begin(), 1);
  Shape shape(reps.size() - data.shape.size(), 1);
  shape.insert(shape.end(), data.shape.begin(), data.shape.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reps[i] < 0) return bad_model("repetition {} is negative", reps[i]);
    shape[i] = TRY(checked_multiply(shape[i], reps[i], "tile"));
  }
  return tensor_result(std::move(shape), data.dtype);
}

Status run_tile(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (outputs[0].size() == 0) return {};
  Ints dense = dense_strides(in.shape());
  Shape extents;
  Ints strides;
  size_t lead = outputs[0].shape().size() - dense.size();
  for (size_t i = 0; i < outputs[0].shape().size(); ++i) {  // dimension i as (repetition, index)
    int64_t extent = i < lead ? 1 : in.shape()[i - lead];
    extents.insert(extents.end(), {outputs[0].shape()[i] / extent, extent});
    strides.insert(strides.end(), {0, i < lead ? 0 : dense[i - lead]});
  }
  gather_strided(outputs[0], in.raw(), 0, extents, strides);
  return {};
}

Result<Type> infer_repeat(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  int64_t repeats = attrs.integer("repeats");
  if (repeats < 1) return bad_model("repeats {} is not positive", repeats);
  int64_t& extent = data.shape[static_cast<size_t>(axis)];
  extent = TRY(checked_multiply(extent, repeats, "repeat"));
  return tensor_result(data.shape, data.dtype);
}

Status run_repeat(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  auto after = static_cast<std::ptrdiff_t>(normal_axis(attrs.integer("axis"), in.rank()) + 1);
  Shape extents = in.shape();
  Ints strides = dense_strides(in.shape());
  extents.insert(extents.begin() + after, attrs.integer("repeats"));
  strides.insert(strides.begin() + after, 0);
  gather_strided(outputs[0], in.raw(), 0, extents, strides);
  return {};
}

Result<Type> infer_broadcast_to(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  const Ints& shape = attrs.ints("shape");
  TRY(checked_num_elements(shape));
  if (TRY(broadcast_shapes(data.shape, shape)) != shape)
    return bad_model("{} does not broadcast to {}", shape_to_string(data.shape),
                     shape_to_string(shape));
  return tensor_result(shape, data.dtype);
}

Status run_broadcast_to(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Shape& to = outputs[0].shape();
  gather_strided(outputs[0], inputs[0].raw(), 0, to, broadcast_strides(inputs[0].shape(), to));
  return {};
}

Result<Type> infer_full(Types args, const Attrs& attrs) {
  TensorType value = TRY(tensor_arg(args, 0));
  if (num_elements(value.shape) != 1)
    return bad_model("the fill value has shape {}", shape_to_string(value.shape));
  return tensor_result(attrs.ints("shape"), value.dtype);
}

Status run_full(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Shape& to = outputs[0].shape();
  gather_strided(outputs[0], inputs[0].raw(), 0, to, Ints(to.size(), 0));
  return {};
}

// Channels ↔ blocks of pixels. "DCR": the block's position is the slow part of the channel index,
// "CRD": the fast part.
Result<Type> infer_depth_to_space(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_rank(data, 4, "data"));
  TRY(require_one_of(attrs.string("mode"), {"DCR", "CRD"}, "mode"));
  int64_t block = attrs.integer("block_size");
  if (block < 1 || block > (1 << 20)) return bad_model("block size {} is out of range", block);
  if (data.shape[1] % (block * block) != 0)
    return bad_model("{} channels do not divide into blocks of {}", data.shape[1], block);
  return tensor_result({data.shape[0], data.shape[1] / (block * block),
                        TRY(checked_multiply(data.shape[2], block, "height")),
                        TRY(checked_multiply(data.shape[3], block, "width"))},
                       data.dtype);
}

Status run_depth_to_space(std::span<const Tensor> inputs, const Attrs& attrs,
                          std::span<Tensor> outputs) {
  const int64_t b = attrs.integer("block_size");
  const Shape& s = inputs[0].shape();
  const int64_t plane = s[2] * s[3], c = s[1] / (b * b);
  const bool dcr = attrs.string("mode") == "DCR";
  const int64_t block_stride = dcr ? c * plane : plane,
                channel_stride = dcr ? plane : b * b * plane;
  gather_strided(outputs[0], inputs[0].raw(), 0, {s[0], c, s[2], b, s[3], b},
                 {s[1] * plane, channel_stride, s[3], b * block_stride, 1, block_stride});
  return {};
}

Result<Type> infer_space_to_depth(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_rank(data, 4, "data"));
  int64_t block = attrs.integer("block_size");
  if (block < 1 || block > (1 << 20)) return bad_model("block size {} is out of range", block);
  if (data.shape[2] % block != 0 || data.shape[3] % block != 0)
    return bad_model("{} does not divide into blocks of {}", shape_to_string(data.shape), block);
  return tensor_result(
      {data.shape[0], TRY(checked_multiply(data.shape[1], block * block, "channels")),
       data.shape[2] / block, data.shape[3] / block},
      data.dtype);
}

Status run_space_to_depth(std::span<const Tensor> inputs, const Attrs& attrs,
                          std::span<Tensor> outputs) {
  const int64_t b = attrs.integer("block_size");
  const Shape& s = inputs[0].shape();
  const int64_t plane = s[2] * s[3];
  gather_strided(outputs[0], inputs[0].raw(), 0, {s[0], b, b, s[1], s[2] / b, s[3] / b},
                 {s[1] * plane, s[3], 1, plane, b * s[3], b});
  return {};
}

}  // namespace

Result<std::vector<SliceRange>> slice_ranges(const Shape& shape, const Attrs& attrs) {
  const Ints &begins = attrs.ints("begin"), &ends = attrs.ints("end");
  Ints steps = attrs.ints("strides");
  auto rank = static_cast<int64_t>(shape.size());
  std::optional<Ints> given = TRY(optional_ints(attrs, "axes"));
  Ints axes = given.value_or(Ints{});
  if (!given)
    for (size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(begins.size(), 1);
  if (begins.size() != ends.size() || begins.size() != axes.size() || begins.size() != steps.size())
    return bad_model("{} begins, {} ends, {} strides, {} axes", begins.size(), ends.size(),
                     steps.size(), axes.size());
  TRY(checked_axes(axes, rank));
  std::vector<SliceRange> ranges;
  for (size_t i = 0; i < begins.size(); ++i) {
    SliceRange range{normal_axis(axes[i], rank), 0, steps[i], 0};
    const int64_t extent = shape[static_cast<size_t>(range.axis)];
    if (range.step == 0) return bad_model("stride 0 on axis {}", range.axis);
    // As Python: negative positions count from the end, all are held to the extent.
    const int64_t low = range.step > 0 ? 0 : -1, high = range.step > 0 ? extent : extent - 1;
    auto position = [&](int64_t at) {
      return at < 0 ? std::max(at + extent, low) : std::min(at, high);
    };
    range.begin = position(begins[i]);
    const int64_t end = position(ends[i]);
    const int64_t distance = range.step > 0 ? end - range.begin : range.begin - end;
    const uint64_t step = range.step > 0 ? static_cast<uint64_t>(range.step)
                                         : uint64_t{0} - static_cast<uint64_t>(range.step);
    if (distance > 0)
      range.count = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / step) + 1;
    ranges.push_back(range);
  }
  return ranges;
}

void register_rearrange_ops() {
  register_injective("transpose", {{"axes", None{}}}, infer_transpose, run_transpose);
  register_injective(
      "strided_slice",
      {{"begin", Ints{}, true}, {"end", Ints{}, true}, {"strides", Ints{}}, {"axes", None{}}},
      infer_slice, run_slice);
  register_injective("reverse", {{"axis", Ints{}, true}}, infer_reverse, run_reverse);
  register_injective("tile", {{"reps", Ints{}, true}}, infer_tile, run_tile);
  register_injective("repeat", {{"repeats", int64_t{1}, true}, {"axis", int64_t{0}}}, infer_repeat,
                     run_repeat);
  register_injective("broadcast_to", {{"shape", Ints{}, true}}, infer_broadcast_to,
                     run_broadcast_to);
  register_injective("full", {{"shape", Ints{}, true}}, infer_full, run_full);
  register_injective("nn.depth_to_space",
                     {{"block_size", int64_t{1}, true}, {"mode", std::string("DCR")}},
                     infer_depth_to_space, run_depth_to_space);
  register_injective("nn.space_to_depth", {{"block_size", int64_t{1}, true}}, infer_space_to_depth,
                     run_space_to_depth);
}

}  // namespace collage
