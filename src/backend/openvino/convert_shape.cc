// Operators that move elements: views, transpose, joining, cutting, repeating, padding.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"
#include "ops/rearrange.h"

namespace collage::openvino {

namespace {

Result<ov::OutputVector> convert_view(const CallView& view) {
  return one(reshaped(view[0], view.result().shape));
}

Result<ov::OutputVector> convert_permutation(const CallView& view) {
  Ints order = view.axes("axes", view.rank(0));
  if (view.attrs.is_none("axes")) std::reverse(order.begin(), order.end());
  return one(make<ov::op::v1::Transpose>(view[0], ints(order)));
}

Result<ov::OutputVector> convert_concatenate(const CallView& view) {
  return one(make<ov::op::v0::Concat>(view.inputs(), view.axis("axis", view.rank(0))));
}

Result<ov::OutputVector> convert_stack(const CallView& view) {
  int64_t axis = view.axis("axis", view.rank(0) + 1);
  Shape shape = view.shape(0);
  shape.insert(shape.begin() + axis, 1);
  ov::OutputVector parts;
  for (const Value& input : view.inputs()) parts.push_back(reshaped(input, shape));
  return one(make<ov::op::v0::Concat>(parts, axis));
}

Result<ov::OutputVector> convert_split(const CallView& view) {
  int64_t axis = view.axis("axis", view.rank(0));
  Ints lengths;
  for (const TensorType& part : view.results())
    lengths.push_back(part.shape[static_cast<size_t>(axis)]);
  if (lengths.size() == 1) return one(view[0]);
  return std::make_shared<ov::op::v1::VariadicSplit>(view[0], int_scalar(axis), ints(lengths))
      ->outputs();
}

// The end that takes `count` elements; one before the start, for a negative step, has no index of
// its own.
int64_t slice_end(const SliceRange& range) {
  int64_t end = range.begin + range.count * range.step;
  return end < 0 ? std::numeric_limits<int64_t>::min() : end;
}

Result<ov::OutputVector> convert_slice(const CallView& view) {
  Ints begins, ends, steps, axes;
  for (const SliceRange& range : TRY(slice_ranges(view.shape(0), view.attrs))) {
    begins.push_back(range.begin);
    ends.push_back(slice_end(range));
    steps.push_back(range.step);
    axes.push_back(range.axis);
  }
  if (axes.empty()) return one(view[0]);
  return one(make<ov::op::v8::Slice>(view[0], ints(begins), ints(ends), ints(steps), ints(axes)));
}

Result<ov::OutputVector> convert_reverse(const CallView& view) {
  Ints axes = view.axes("axis", view.rank(0));
  if (axes.empty()) return one(view[0]);
  Ints begins(axes.size(), -1), steps(axes.size(), -1);
  Ints ends(axes.size(), std::numeric_limits<int64_t>::min());
  return one(make<ov::op::v8::Slice>(view[0], ints(begins), ints(ends), ints(steps), ints(axes)));
}

Result<ov::OutputVector> convert_tile(const CallView& view) {
  return one(make<ov::op::v0::Tile>(view[0], ints(view.attrs.ints("reps"))));
}

// [a, b] repeated twice along the last axis is [a, b, 1] tiled to [a, b, 2], seen as [a, 2b].
Result<ov::OutputVector> convert_repeat(const CallView& view) {
  int64_t axis = view.axis("axis", view.rank(0));
  Shape shape = view.shape(0);
  shape.insert(shape.begin() + axis + 1, 1);
  Ints reps(shape.size(), 1);
  reps[static_cast<size_t>(axis) + 1] = view.attrs.integer("repeats");
  Value tiled = make<ov::op::v0::Tile>(reshaped(view[0], shape), ints(reps));
  return one(reshaped(tiled, view.result().shape));
}

Result<ov::OutputVector> convert_broadcast(const CallView& view) {
  return one(make<ov::op::v3::Broadcast>(view[0], ints(view.result().shape)));
}

Result<ov::OutputVector> convert_full(const CallView& view) {
  return one(make<ov::op::v3::Broadcast>(reshaped(view[0], {}), ints(view.result().shape)));
}

Result<ov::OutputVector> convert_pad(const CallView& view) {
  const std::string& mode = view.attrs.string("pad_mode");
  Ints begins, ends;
  for (size_t d = 0; d < view.attrs.int_lists("pad_width").size(); ++d) {
    const Ints& width = view.attrs.int_lists("pad_width")[d];
    if (mode == "reflect" && std::max(width[0], width[1]) >= view.shape(0)[d])
      return unsupported("reflection by {} at extent {}", attr_to_string(width), view.shape(0)[d]);
    if (mode != "constant" && std::min(width[0], width[1]) < 0)
      return unsupported("pad_mode {} with negative widths", mode);
    begins.push_back(width[0]);
    ends.push_back(width[1]);
  }
  ov::op::PadMode how = ov::op::PadMode::CONSTANT;
  if (mode == "edge") {
    how = ov::op::PadMode::EDGE;
  } else if (mode == "reflect") {
    how = ov::op::PadMode::REFLECT;
  } else if (mode != "constant") {
    return unsupported("pad_mode {}", mode);
  }
  // It keeps the value in float32.
  if (how == ov::op::PadMode::CONSTANT && view.type(1).dtype == DType::kInt32) {
    const auto value = ov::as_type_ptr<ov::op::v0::Constant>(view[1].get_node_shared_ptr());
    constexpr int32_t kMost = 1 << 24;
    if (value == nullptr || std::abs(int64_t{value->cast_vector<int32_t>()[0]}) > kMost)
      return unsupported("padding with an int32 that float32 may not hold");
  }
  return one(make<ov::op::v12::Pad>(view[0], ints(begins), ints(ends), reshaped(view[1], {}), how));
}

Result<ov::OutputVector> convert_depth_to_space(const CallView& view) {
  using Mode = ov::op::v0::DepthToSpace::DepthToSpaceMode;
  Mode mode = view.attrs.string("mode") == "CRD" ? Mode::DEPTH_FIRST : Mode::BLOCKS_FIRST;
  return one(make<ov::op::v0::DepthToSpace>(view[0], mode,
                                            static_cast<size_t>(view.attrs.integer("block_size"))));
}

Result<ov::OutputVector> convert_space_to_depth(const CallView& view) {
  return one(make<ov::op::v0::SpaceToDepth>(
      view[0], ov::op::v0::SpaceToDepth::SpaceToDepthMode::BLOCKS_FIRST,
      static_cast<size_t>(view.attrs.integer("block_size"))));
}

// A constant says which elements stay.
Result<ov::OutputVector> convert_trilu(const CallView& view) {
  const Shape& shape = view.shape(0);
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows * columns > (int64_t{1} << 22)) return unsupported("a mask of {}×{}", rows, columns);
  bool upper = view.attrs.flag("upper");
  int64_t k = std::clamp(view.attrs.integer("k"), -rows, columns);
  std::vector<char> keep;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) keep.push_back(upper ? j >= i + k : j <= i + k);
  Value mask = make<ov::op::v0::Constant>(
      ov::element::boolean, ov::Shape{static_cast<size_t>(rows), static_cast<size_t>(columns)},
      keep);
  return one(make<ov::op::v1::Select>(mask, view[0], scalar(0, view[0])));
}

Result<ov::OutputVector> convert_reverse_sequence(const CallView& view) {
  int64_t rank = view.rank(0);
  return one(make<ov::op::v0::ReverseSequence>(view[0], view[1], view.axis("batch_axis", rank),
                                               view.axis("seq_axis", rank)));
}

}  // namespace

ConverterTable shape_converters() {
  return {
      {"reshape", kAny, convert_view},
      {"squeeze", kAny, convert_view},
      {"expand_dims", kAny, convert_view},
      {"nn.batch_flatten", kAny, convert_view},
      {"transpose", kAny, convert_permutation},
      {"concatenate", kAny, convert_concatenate},
      {"stack", kAny, convert_stack},
      {"split", kAny, convert_split},
      {"strided_slice", kAny, convert_slice},
      {"reverse", kAny, convert_reverse},
      {"tile", kAny, convert_tile},
      {"repeat", kAny, convert_repeat},
      {"broadcast_to", kAny, convert_broadcast},
      {"full", kAny, convert_full},
      {"nn.pad", kNumber, convert_pad},
      {"nn.depth_to_space", kAny, convert_depth_to_space},
      {"nn.space_to_depth", kAny, convert_space_to_depth},
      {"trilu", kNumber, convert_trilu},
      {"reverse_sequence", kNumber, convert_reverse_sequence, 1},
  };
}

}  // namespace collage::openvino
