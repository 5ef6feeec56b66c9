// Operators that move elements without computing on them. Target shapes, axes, splits and bounds
// must be known while importing.
#include <algorithm>
#include <numeric>

#include "base/integers.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "ops/type_rules.h"

namespace collage::frontend {

namespace {

Result<Expr> convert_reshape(NodeContext& node) {
  const auto target = TRY(node.ints_from(1, "shape"));
  if (!target) return bad_model("no target shape");
  const bool allow_zero = TRY(node.flag("allowzero", false));
  const Shape& from = node.shape(0);
  const int64_t count = num_elements(from);
  Shape shape = *target;
  int64_t known = 1;
  std::ptrdiff_t open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= from.size())
        return bad_model("target {} copies dimension {}, the data {} has none",
                         shape_to_string(*target), i, shape_to_string(from));
      shape[i] = from[i];
    }
    if (shape[i] == -1) {
      if (open >= 0)
        return bad_model("target {} has two open dimensions", shape_to_string(*target));
      open = static_cast<std::ptrdiff_t>(i);
    } else if (shape[i] < 0 || shape[i] > kMaxDimension ||
               __builtin_mul_overflow(known, shape[i], &known)) {
      return bad_model("target {} is out of range", shape_to_string(*target));
    }
  }
  if (open >= 0) {
    if (known == 0 ? count != 0 : count % known != 0)
      return bad_model("data of shape {} does not fit target {}", shape_to_string(from),
                       shape_to_string(*target));
    shape[static_cast<size_t>(open)] = known == 0 ? 0 : count / known;
  } else if (known != count) {
    return bad_model("data of shape {} does not fit target {}", shape_to_string(from),
                     shape_to_string(*target));
  }
  return node.reshape(node.in(0), std::move(shape));
}

Result<Expr> convert_flatten(NodeContext& node) {
  const Shape& shape = node.shape(0);
  const int64_t rank = node.rank(0);
  int64_t axis = TRY(node.integer("axis", 1));
  if (axis < -rank || axis > rank)
    return bad_model("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank;
  const size_t split = static_cast<size_t>(axis);
  return node.reshape(node.in(0), {product(shape, 0, split), product(shape, split, shape.size())});
}

Result<Expr> convert_squeeze(NodeContext& node) {
  const auto given = TRY(node.ints_from(1, "axes"));
  Shape shape;
  Ints axes;
  if (given) axes = TRY(normal_axes(*given, node.rank(0)));
  for (int64_t i = 0; i < node.rank(0); ++i) {
    const int64_t extent = node.shape(0)[static_cast<size_t>(i)];
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && extent != 1) return bad_model("axis {} has {} elements, not 1", i, extent);
    if (given ? !named : extent != 1) shape.push_back(extent);
  }
  return node.reshape(node.in(0), std::move(shape));
}

Result<Expr> convert_unsqueeze(NodeContext& node) {
  const auto given = TRY(node.ints_from(1, "axes"));
  if (!given) return bad_model("no axes");
  const int64_t rank = node.rank(0) + static_cast<int64_t>(given->size());
  if (rank > kMaxRank) return bad_model("rank {}, the limit is {}", rank, kMaxRank);
  const Ints axes = TRY(normal_axes(*given, rank));
  Shape shape = node.shape(0);
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return node.reshape(node.in(0), std::move(shape));
}

Result<Expr> convert_transpose(NodeContext& node) {
  const int64_t rank = node.rank(0);
  Ints reversed(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) reversed[static_cast<size_t>(i)] = rank - 1 - i;
  const Ints perm = TRY(node.ints("perm", reversed));
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed)
    return bad_model("perm {} is no permutation of {} axes", shape_to_string(perm), rank);
  return node.transpose(node.in(0), perm);
}

Result<Expr> convert_concat(NodeContext& node) {
  const int64_t given =
      TRY(node.integer("axis", node.opset() < 4 ? std::optional<int64_t>(1) : std::nullopt));
  const int64_t axis = TRY(normal_axis(given, node.rank(0)));
  if (node.num_inputs() == 1) return node.in(0);
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (!node.has(i)) return bad_model("input {} is missing", i);
  return node.call("concatenate", {make_tuple(node.inputs())}, {{"axis", axis}});
}

Result<Outputs> convert_split(NodeContext& node) {
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", 0)), node.rank(0)));
  const int64_t extent = node.shape(0)[static_cast<size_t>(axis)];
  const int64_t parts = static_cast<int64_t>(node.num_outputs());
  if (parts == 0) return bad_model("no outputs");
  Ints sizes;
  if (auto given = TRY(node.ints_from(1, "split"))) {
    sizes = *given;
  } else {
    if (TRY(node.integer("num_outputs", parts)) != parts)
      return bad_model("num_outputs differs from the {} outputs", parts);
    if (node.opset() < 18 && extent % parts != 0)
      return bad_model("{} elements do not split into {} equal parts", extent, parts);
    const int64_t size = ceil_div(extent, parts);
    for (int64_t i = 0, rest = extent; i < parts; ++i, rest -= sizes.back())
      sizes.push_back(std::min(size, rest));
  }
  if (sizes.size() != static_cast<size_t>(parts))
    return bad_model("{} split sizes for {} outputs", sizes.size(), parts);
  Ints points;
  int64_t end = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - end)
      return bad_model("split sizes {} do not sum to {}", shape_to_string(sizes), extent);
    end += size;
    points.push_back(end);
  }
  if (end != extent)
    return bad_model("split sizes {} do not sum to {}", shape_to_string(sizes), extent);
  points.pop_back();
  if (parts == 1) return Outputs{node.in(0)};
  Expr pieces =
      TRY(node.call("split", {node.in(0)}, {{"indices_or_sections", points}, {"axis", axis}}));
  Outputs outputs;
  for (int64_t i = 0; i < parts; ++i) outputs.push_back(node.item(pieces, i));
  return outputs;
}

// Begins and ends are clamped to the data, as numpy does; the result has only plain numbers.
Result<Expr> convert_slice(NodeContext& node) {
  const bool by_input = node.opset() >= 10;
  if (by_input && (!node.has(1) || !node.has(2))) return bad_model("starts or ends are missing");
  const Ints starts = by_input ? TRY(node.constant_ints(1, "starts")) : TRY(node.ints("starts"));
  const Ints ends = by_input ? TRY(node.constant_ints(2, "ends")) : TRY(node.ints("ends"));
  Ints axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (auto given = TRY(node.ints_from(3, "axes"))) axes = *given;
  Ints steps(starts.size(), 1);
  if (by_input && node.has(4)) steps = TRY(node.constant_ints(4, "steps"));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return bad_model("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(),
                     axes.size(), steps.size());
  TRY(normal_axes(axes, node.rank(0)));
  Ints begin, end;
  bool changes = false;
  for (size_t i = 0; i < starts.size(); ++i) {
    axes[i] = TRY(normal_axis(axes[i], node.rank(0)));
    const int64_t extent = node.shape(0)[static_cast<size_t>(axes[i])];
    if (steps[i] == 0) return bad_model("a step is 0");
    steps[i] = std::clamp<int64_t>(steps[i], -kMaxDimension, kMaxDimension);
    const bool forward = steps[i] > 0;
    const int64_t low = forward ? 0 : -1, high = forward ? extent : extent - 1;
    auto clamp = [&](int64_t value) {
      return std::clamp(value < 0 ? value + extent : value, low, high);
    };
    begin.push_back(clamp(starts[i]));
    end.push_back(clamp(ends[i]));
    // Other sizes may reach the end.
    const bool is_bounded = node.has_run_sizes() && ends[i] > extent && ends[i] < INT32_MAX;
    changes |= begin.back() != 0 || end.back() != extent || steps[i] != 1 || is_bounded;
  }
  if (!changes) return node.in(0);
  // -1 would count from the end there; an end before the first element is written as the least
  // number.
  for (size_t i = 0; i < end.size(); ++i) {
    const int64_t extent = node.shape(0)[static_cast<size_t>(axes[i])];
    if (end[i] < 0) end[i] = -extent - 1;
    if (begin[i] < 0) begin[i] = -extent - 1;
  }
  return node.call("strided_slice", {node.in(0)},
                   {{"begin", begin}, {"end", end}, {"strides", steps}, {"axes", axes}});
}

Result<Expr> convert_expand(NodeContext& node) {
  const Ints target = TRY(node.constant_ints(1, "shape"));
  TRY(check_computed_shape(target));
  const Shape shape = TRY(broadcast_shapes(node.shape(0), target));
  TRY(check_computed_shape(shape));
  return node.broadcast_to(node.in(0), shape);
}

// Before operator set 6 the repeats of one axis came as two inputs.
Result<Expr> convert_tile(NodeContext& node) {
  Ints repeats = TRY(node.constant_ints(1, "repeats"));
  if (static_cast<int64_t>(repeats.size()) != node.rank(0))
    return bad_model("{} repeats for rank {}", repeats.size(), node.rank(0));
  for (int64_t count : repeats)
    if (count < 0 || count > kMaxDimension) return bad_model("a repeat is {}", count);
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t count) { return count == 1; }))
    return node.in(0);
  return node.call("tile", {node.in(0)}, {{"reps", repeats}});
}

// Negative pads crop first; what is left pads.
Result<Expr> convert_pad(NodeContext& node) {
  const std::string mode = TRY(node.text("mode", "constant"));
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return bad_model("mode '{}' is unknown", mode);
  const bool by_input = node.opset() >= 11;
  if (by_input && !node.has(1)) return bad_model("pads are missing");
  const Ints pads = by_input ? TRY(node.constant_ints(1, "pads"))
                             : TRY(node.ints(node.has_attr("paddings") ? "paddings" : "pads"));
  const size_t rank = static_cast<size_t>(node.rank(0));
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3)) {
    axes = TRY(node.constant_ints(3, "axes"));
    TRY(normal_axes(axes, node.rank(0)));
  }
  if (pads.size() != 2 * axes.size())
    return bad_model("{} pads for {} axes", pads.size(), axes.size());
  IntLists widths(rank, Ints{0, 0});
  Ints begin(rank, 0), end = node.shape(0), all(rank);
  std::iota(all.begin(), all.end(), 0);
  bool crops = false, grows = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(TRY(normal_axis(axes[i], node.rank(0))));
    const int64_t before = pads[i], after = pads[i + axes.size()];
    if (std::max(std::abs(before), std::abs(after)) > kMaxDimension || before == INT64_MIN ||
        after == INT64_MIN)
      return bad_model("pads hold {} and {}", before, after);
    widths[axis] = {std::max<int64_t>(before, 0), std::max<int64_t>(after, 0)};
    begin[axis] = std::max<int64_t>(-before, 0);
    end[axis] -= std::max<int64_t>(-after, 0);
    if (begin[axis] > end[axis])
      return bad_model("pads {} and {} take more than the {} elements of axis {}", before, after,
                       node.shape(0)[axis], axis);
    crops |= before < 0 || after < 0;
    grows |= before > 0 || after > 0;
  }
  Expr data = node.in(0);
  if (crops)
    data =
        TRY(node.call("strided_slice", {data},
                      {{"begin", begin}, {"end", end}, {"strides", Ints(rank, 1)}, {"axes", all}}));
  if (!grows) return data;
  Expr value;
  if (by_input && node.has(2)) {
    if (num_elements(node.shape(2)) != 1) return bad_model("the pad value is no single value");
    value = TRY(node.reshape(node.in(2), {}));
  } else {
    value = TRY(node.scalar_like(data, by_input ? 0.0 : TRY(node.real("value", 0.0))));
  }
  return node.call("nn.pad", {data, value}, {{"pad_width", widths}, {"pad_mode", mode}});
}

Result<Expr> convert_depth_to_space(NodeContext& node) {
  const int64_t block = TRY(node.integer("blocksize"));
  if (block < 1 || block > kMaxDimension) return bad_model("blocksize is {}", block);
  const std::string mode = TRY(node.text("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return bad_model("mode '{}' is neither DCR nor CRD", mode);
  return node.call("nn.depth_to_space", {node.in(0)}, {{"block_size", block}, {"mode", mode}});
}

// Mode CRD keeps each channel's block together; it is written out.
Result<Expr> convert_space_to_depth(NodeContext& node) {
  const int64_t block = TRY(node.integer("blocksize"));
  if (block < 1 || block > kMaxDimension) return bad_model("blocksize is {}", block);
  const std::string mode = TRY(node.text("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return bad_model("mode '{}' is neither DCR nor CRD", mode);
  if (mode == "DCR") return node.call("nn.space_to_depth", {node.in(0)}, {{"block_size", block}});
  const Shape shape = node.shape(0);
  if (shape.size() != 4 || shape[2] % block != 0 || shape[3] % block != 0)
    return bad_model("data of shape {} does not split into blocks of {}", shape_to_string(shape),
                     block);
  const int64_t rows = shape[2] / block, columns = shape[3] / block;
  Expr blocks = TRY(node.reshape(node.in(0), {shape[0], shape[1], rows, block, columns, block}));
  blocks = TRY(node.transpose(blocks, {0, 1, 3, 5, 2, 4}));
  return node.reshape(blocks, {shape[0], shape[1] * block * block, rows, columns});
}

Result<Expr> convert_reverse_sequence(NodeContext& node) {
  return node.call("reverse_sequence", {node.in(0), node.in(1)},
                   {{"seq_axis", TRY(node.integer("time_axis", 0))},
                    {"batch_axis", TRY(node.integer("batch_axis", 1))}});
}

// Pads and crops the middle of each axis to the target.
Result<Expr> convert_center_crop_pad(NodeContext& node) {
  const Ints target = TRY(node.constant_ints(1, "shape"));
  Ints axes(target.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = TRY(node.ints("axes", axes));
  if (axes.size() != target.size())
    return bad_model("{} axes for a target of {}", axes.size(), target.size());
  TRY(normal_axes(axes, node.rank(0)));
  const size_t rank = static_cast<size_t>(node.rank(0));
  Ints begin(rank, 0), end = node.shape(0), all(rank);
  std::iota(all.begin(), all.end(), 0);
  IntLists widths(rank, Ints{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(TRY(normal_axis(axes[i], node.rank(0))));
    const int64_t extent = node.shape(0)[axis], wanted = target[i];
    if (wanted < 0 || wanted > kMaxDimension) return bad_model("the target holds {}", wanted);
    if (wanted < extent) {
      begin[axis] = (extent - wanted) / 2;
      end[axis] = begin[axis] + wanted;
    } else {
      widths[axis] = {(wanted - extent) / 2, (wanted - extent) - (wanted - extent) / 2};
    }
  }
  Expr data =
      TRY(node.call("strided_slice", {node.in(0)},
                    {{"begin", begin}, {"end", end}, {"strides", Ints(rank, 1)}, {"axes", all}}));
  return node.call("nn.pad", {data, TRY(node.scalar_like(data, 0))},
                   {{"pad_width", widths}, {"pad_mode", std::string("constant")}});
}

}  // namespace

ConverterRows shape_converters() {
  return {
      {"CenterCropPad", 2, 2, single(convert_center_crop_pad)},
      {"Concat", 1, -1, single(convert_concat)},
      {"DepthToSpace", 1, 1, single(convert_depth_to_space)},
      {"Expand", 2, 2, single(convert_expand)},
      {"Flatten", 1, 1, single(convert_flatten)},
      {"Pad", 1, 4, single(convert_pad)},
      {"Reshape", 1, 2, single(convert_reshape)},
      {"ReverseSequence", 2, 2, single(convert_reverse_sequence)},
      {"Slice", 1, 5, single(convert_slice)},
      {"SpaceToDepth", 1, 1, single(convert_space_to_depth)},
      {"Split", 1, 2, convert_split},
      {"Squeeze", 1, 2, single(convert_squeeze)},
      {"Tile", 2, 2, single(convert_tile)},
      {"Transpose", 1, 1, single(convert_transpose)},
      {"Unsqueeze", 1, 2, single(convert_unsqueeze)},
  };
}

}  // namespace collage::frontend
