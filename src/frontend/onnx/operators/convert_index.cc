// Reading and writing by index, sorting, running sums and products.
#include <algorithm>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "ops/counted/data_dependent.h"

namespace collage::frontend {

namespace {

Converter by_axis(const char* op) {
  return single([op](NodeContext& node) -> Result<Expr> {
    const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", 0)), node.rank(0)));
    return node.call(op, {node.in(0), node.in(1)}, {{"axis", axis}});
  });
}

Result<Expr> convert_gather_nd(NodeContext& node) {
  return node.call("gather_nd", {node.in(0), node.in(1)},
                   {{"batch_dims", TRY(node.integer("batch_dims", 0))}});
}

// ONNX calls the plain overwrite "none".
Result<std::string> read_reduction(const NodeContext& node) {
  const std::string reduction = TRY(node.text("reduction", "none"));
  if (reduction == "none") return std::string("update");
  for (const char* known : {"add", "mul", "min", "max"})
    if (reduction == known) return reduction;
  return bad_model("reduction '{}' is unknown", reduction);
}

Result<Expr> convert_scatter_elements(NodeContext& node) {
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", 0)), node.rank(0)));
  return node.call("scatter_elements", {node.in(0), node.in(1), node.in(2)},
                   {{"axis", axis}, {"reduction", TRY(read_reduction(node))}});
}

Result<Expr> convert_scatter_nd(NodeContext& node) {
  return node.call("scatter_nd", {node.in(0), node.in(1), node.in(2)},
                   {{"mode", TRY(read_reduction(node))}});
}

Result<Expr> convert_one_hot(NodeContext& node) {
  Tensor depth = TRY(node.constant(1, "depth"));
  if (depth.size() != 1) return bad_model("depth is no single value");
  const double count = depth.element_as_double(0);
  if (!(count >= 1 && count <= static_cast<double>(kMaxDimension)))
    return bad_model("depth is {}", count);
  if (num_elements(node.shape(2)) != 2)
    return bad_model("values of shape {}, not two", shape_to_string(node.shape(2)));
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -1)), node.rank(0) + 1));
  Expr values = TRY(node.reshape(node.in(2), {2}));
  Expr pair =
      TRY(node.call("split", {values}, {{"indices_or_sections", Ints{1}}, {"axis", int64_t{0}}}));
  Expr off = TRY(node.reshape(node.item(pair, 0), {}));
  Expr on = TRY(node.reshape(node.item(pair, 1), {}));
  return node.call("one_hot", {node.in(0), on, off},
                   {{"depth", static_cast<int64_t>(count)}, {"axis", axis}});
}

Result<Expr> top_k(NodeContext& node, int64_t axis, int64_t k) {
  return node.call("topk", {node.in(0)},
                   {{"k", k},
                    {"axis", axis},
                    {"largest", TRY(node.flag("largest", true))},
                    {"sorted", TRY(node.flag("sorted", true))}});
}

// All in order, and of them the first k.
Result<Outputs> convert_counted_top_k(NodeContext& node, int64_t axis) {
  const Expr all = TRY(top_k(node, axis, node.shape(0)[static_cast<size_t>(axis)]));
  Outputs outputs;
  for (const int64_t i : {0, 1})
    outputs.push_back(TRY(node.first_of(node.item(all, i), node.in(1), axis)));
  return outputs;
}

Result<Outputs> convert_top_k(NodeContext& node) {
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -1)), node.rank(0)));
  int64_t k = 0;
  if (node.opset() < 10) {
    k = TRY(node.integer("k"));
  } else {
    if (!node.has(1)) return bad_model("k is missing");
    const bool is_call = as<ConstantNode>(node.in(1)) == nullptr;
    if (node.has_run_sizes() && is_call && node.count_anew(node.in(1)))
      return convert_counted_top_k(node, axis);
    const Ints values = TRY(node.constant_ints(1, "k"));
    if (values.size() != 1) return bad_model("k has {} values", values.size());
    k = values[0];
  }
  const int64_t extent = node.shape(0)[static_cast<size_t>(axis)];
  if (k < 0 || k > extent) return bad_model("k is {}, axis {} has {} elements", k, axis, extent);
  const Expr both = TRY(top_k(node, axis, k));
  return Outputs{node.item(both, 0), node.item(both, 1)};
}

// Of a running sum or product.
Result<int64_t> running_axis(NodeContext& node) {
  const Ints axes = TRY(node.constant_ints(1, "axis"));
  if (axes.size() != 1) return bad_model("axis has {} values", axes.size());
  return normal_axis(axes[0], node.rank(0));
}

Result<Expr> convert_cumsum(NodeContext& node) {
  return node.call("cumsum", {node.in(0)},
                   {{"axis", TRY(running_axis(node))},
                    {"exclusive", TRY(node.flag("exclusive", false))},
                    {"reverse", TRY(node.flag("reverse", false))}});
}

// The data moved by some places along an axis, with ones behind it.
Result<Expr> moved(NodeContext& node, const Expr& data, size_t axis, int64_t by, bool backwards) {
  const int64_t extent = shape_of(data)[axis];
  Expr kept = TRY(node.call("strided_slice", {data},
                            {{"begin", Ints{backwards ? by : 0}},
                             {"end", Ints{backwards ? extent : extent - by}},
                             {"axes", Ints{static_cast<int64_t>(axis)}}}));
  IntLists widths(shape_of(data).size(), Ints{0, 0});
  widths[axis] = backwards ? Ints{0, by} : Ints{by, 0};
  return node.call("nn.pad", {kept, TRY(node.scalar_like(data, 1))},
                   {{"pad_width", widths}, {"pad_mode", std::string("constant")}});
}

// By doubling: each step multiplies products of some elements with those of as many before them.
Result<Expr> convert_cumprod(NodeContext& node) {
  const auto axis = static_cast<size_t>(TRY(running_axis(node)));
  const bool backwards = TRY(node.flag("reverse", false));
  const int64_t extent = node.shape(0)[axis];
  Expr result = node.in(0);
  if (TRY(node.flag("exclusive", false)) && extent > 0)
    result = TRY(moved(node, result, axis, 1, backwards));
  for (int64_t by = 1; by < extent; by *= 2)
    result = TRY(node.call("multiply", {result, TRY(moved(node, result, axis, by, backwards))}));
  return result;
}

// Writes each batch's update to its cache from the batch's own position on, along `axis`, which
// goes behind the batch for that; "circular" goes on at the cache's beginning.
Result<Expr> convert_tensor_scatter(NodeContext& node) {
  const std::string mode = TRY(node.text("mode", "linear"));
  if (mode != "linear" && mode != "circular") return bad_model("mode '{}' is unknown", mode);
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -2)), node.rank(0)));
  if (axis == 0 || node.rank(1) != node.rank(0))
    return bad_model("axis {}, a cache of shape {} and an update of shape {}", axis,
                     shape_to_string(node.shape(0)), shape_to_string(node.shape(1)));
  Ints there = {0, axis}, back = {0};
  for (int64_t i = 1; i < node.rank(0); ++i) {
    if (i != axis) there.push_back(i);
    back.push_back(i == axis ? 1 : i < axis ? i + 1 : i);
  }
  const int64_t batch = node.shape(1)[0], length = node.shape(1)[static_cast<size_t>(axis)];
  auto iota = [&](int64_t count, Shape shape) -> Result<Expr> {
    return node.reshape(TRY(node.arange(count)), std::move(shape));
  };
  Expr places = TRY(node.broadcast_to(TRY(iota(length, {1, length})), {batch, length}));
  if (node.has(2)) {
    Expr first = TRY(node.cast(node.in(2), DType::kInt64));
    places = TRY(node.call("add", {places, TRY(node.reshape(first, {batch, 1}))}));
  }
  if (mode == "circular") {
    const auto extent = static_cast<double>(node.shape(0)[static_cast<size_t>(axis)]);
    places = TRY(node.call("floor_mod", {places, TRY(node.scalar_like(places, extent))}));
  }
  Expr batches = TRY(node.broadcast_to(TRY(iota(batch, {batch, 1})), {batch, length}));
  Expr indices = TRY(node.call("stack", {make_tuple({batches, places})}, {{"axis", int64_t{-1}}}));
  Expr result = TRY(node.call(
      "scatter_nd",
      {TRY(node.transpose(node.in(0), there)), indices, TRY(node.transpose(node.in(1), there))},
      {{"mode", std::string("update")}}));
  return node.transpose(result, back);
}

Result<Expr> convert_trilu(NodeContext& node) {
  if (node.rank(0) < 2) return bad_model("data of rank {}, at least 2 is needed", node.rank(0));
  int64_t k = 0;
  if (node.has(1)) {
    const Ints values = TRY(node.constant_ints(1, "k"));
    if (values.size() != 1) return bad_model("k has {} values", values.size());
    k = std::clamp(values[0], -kMaxDimension, kMaxDimension);
  }
  return node.call("trilu", {node.in(0)}, {{"k", k}, {"upper", TRY(node.flag("upper", true))}});
}

// The positions of what is not zero, (rank, as many as there are).
Result<Expr> counted_non_zero(NodeContext& node, const Expr& data) {
  const Expr both = TRY(node.call("nonzero", {data}));
  return node.first_of(node.item(both, 0), node.item(both, 1), 1);
}

// How many there are decides the shape: a constant, or a size of a run.
Result<Expr> convert_non_zero(NodeContext& node) {
  if (node.has_run_sizes()) return counted_non_zero(node, node.in(0));
  Tensor data = TRY(node.constant(0, "the data"));
  if (data.size() > kMaxFoldedIntegers) return unsupported("{} elements", data.size());
  return node.constant_of(TRY(find_non_zero(data)));
}

// Selects slices by a condition.
Result<Expr> convert_compress(NodeContext& node) {
  Expr data = node.in(0);
  int64_t axis = 0;
  if (node.has_attr("axis")) {
    axis = TRY(normal_axis(TRY(node.integer("axis")), node.rank(0)));
  } else {
    data = TRY(node.reshape(data, {num_elements(node.shape(0))}));
  }
  const int64_t extent = shape_of(data)[static_cast<size_t>(axis)];
  if (node.has_run_sizes()) {
    const Shape& shape = node.shape(1);
    if (shape.size() != 1 || shape[0] > extent)
      return bad_model("a condition of shape {} for {} elements", shape_to_string(shape), extent);
    const Expr places = TRY(counted_non_zero(node, node.in(1)));
    const int64_t count = shape_of(places)[1];
    return node.call("take", {data, TRY(node.reshape(places, {count}))}, {{"axis", axis}});
  }
  Tensor condition = TRY(node.constant(1, "the condition"));
  if (condition.rank() != 1 || condition.size() > extent)
    return bad_model("a condition of shape {} for {} elements", shape_to_string(condition.shape()),
                     extent);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < condition.size(); ++i)
    if (condition.element_as_int64(i) != 0) chosen.push_back(i);
  Expr indices =
      node.constant_of(Tensor::from<int64_t>({static_cast<int64_t>(chosen.size())}, chosen));
  return node.call("take", {data, indices}, {{"axis", axis}});
}

// The distinct slices, the number of the first of each, the distinct one that each slice is, and
// how often each is there.
Result<Outputs> convert_unique(NodeContext& node) {
  Expr data = node.in(0);
  int64_t axis = 0;
  if (node.has_attr("axis"))
    axis = TRY(normal_axis(TRY(node.integer("axis")), node.rank(0)));
  else
    data = TRY(node.reshape(data, {num_elements(node.shape(0))}));
  const Expr all = TRY(
      node.call("unique", {data}, {{"axis", axis}, {"sorted", TRY(node.flag("sorted", true))}}));
  const Expr count = node.item(all, 3);
  const Expr first = TRY(node.first_of(node.item(all, 0), count, 0));
  Outputs outputs = {TRY(node.call("take", {data, first}, {{"axis", axis}})), first,
                     node.item(all, 2)};
  if (node.wants(3)) outputs.push_back(TRY(node.first_of(node.item(all, 1), count, 0)));
  return outputs;
}

// An input that is one element, or what it is where it is absent.
template <typename T>
Result<Expr> single_or(NodeContext& node, size_t i, T fallback) {
  return node.has(i) ? node.reshape(node.in(i), {}) : node.constant_of(Tensor::scalar<T>(fallback));
}

Result<Expr> convert_non_max_suppression(NodeContext& node) {
  const Expr count = TRY(single_or<int64_t>(node, 2, 0));
  // The same for all sizes.
  const auto* most = node.has(2) ? as<ConstantNode>(node.in(2)) : nullptr;
  const int64_t most_boxes =
      most == nullptr ? -1 : std::max<int64_t>(0, most->value.element_as_int64(0));
  const Expr both = TRY(node.call("vision.non_max_suppression",
                                  {node.in(0), node.in(1), count, TRY(single_or<float>(node, 3, 0)),
                                   TRY(single_or<float>(node, 4, 0))},
                                  {{"center_point_box", TRY(node.flag("center_point_box", false))},
                                   {"by_score", node.has(4)},
                                   {"most_boxes", most_boxes}}));
  return node.first_of(node.item(both, 0), node.item(both, 1), 0);
}

}  // namespace

ConverterRows index_converters() {
  return {
      {"Compress", 2, 2, single(convert_compress)},
      {"CumProd", 2, 2, single(convert_cumprod)},
      {"CumSum", 2, 2, single(convert_cumsum)},
      {"Gather", 2, 2, by_axis("take")},
      {"GatherElements", 2, 2, by_axis("gather")},
      {"GatherND", 2, 2, single(convert_gather_nd)},
      {"NonMaxSuppression", 2, 5, single(convert_non_max_suppression)},
      {"NonZero", 1, 1, single(convert_non_zero)},
      {"OneHot", 3, 3, single(convert_one_hot)},
      {"Scatter", 3, 3, single(convert_scatter_elements)},
      {"ScatterElements", 3, 3, single(convert_scatter_elements)},
      {"ScatterND", 3, 3, single(convert_scatter_nd)},
      {"TensorScatter", 2, 3, single(convert_tensor_scatter)},
      {"TopK", 1, 2, convert_top_k},
      {"Trilu", 1, 2, single(convert_trilu)},
      {"Unique", 1, 1, convert_unique},
  };
}

}  // namespace collage::frontend
