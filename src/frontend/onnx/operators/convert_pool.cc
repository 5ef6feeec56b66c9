// Pools over sliding windows and over whole images.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/window.h"

namespace collage::frontend {

namespace {

Result<Attrs> pool_attrs(const NodeContext& node, const Window& window) {
  const bool ceil_mode = TRY(node.flag("ceil_mode", false));
  return Attrs{{"pool_size", window.kernel},
               {"strides", window.strides},
               {"dilation", window.dilations},
               {"padding", window.padding},
               {"ceil_mode", ceil_mode}};
}

// Where each tap of each window reads in a plane of `extents`, (windows, taps) flattened. A tap in
// the padding reads what the window's first tap inside reads, so that it is never a larger one.
Tensor places_of_taps(const Window& window, const Ints& extents, const Ints& windows) {
  const size_t dims = window.rank();
  const int64_t taps = product(window.kernel, 0, dims), count = product(windows, 0, dims);
  Tensor places = Tensor::empty(DType::kInt64, {count * taps});
  for (int64_t i = 0; i < count; ++i) {
    int64_t* row = places.data<int64_t>() + i * taps;
    int64_t first = -1;
    for (int64_t k = 0; k < taps; ++k) {
      int64_t tap = k, at = i, stride = 1;
      row[k] = 0;
      for (size_t d = dims; d-- > 0;) {
        const int64_t x = at % windows[d] * window.strides[d] - window.padding[d] +
                          tap % window.kernel[d] * window.dilations[d];
        if (x < 0 || x >= extents[d]) row[k] = -1;
        if (row[k] >= 0) row[k] += x * stride;
        at /= windows[d];
        tap /= window.kernel[d];
        stride *= extents[d];
      }
      if (first < 0) first = row[k];
    }
    std::replace(row, row + taps, int64_t{-1}, std::max<int64_t>(first, 0));
  }
  return places;
}

// A place in a plane that is stored row by row as that in one that is stored column by column: with
// the order of its dimensions reversed.
int64_t transposed_place(int64_t place, const Ints& extents) {
  int64_t result = 0;
  for (size_t d = extents.size(); d-- > 0;) {
    result += place % extents[d] * product(extents, 0, d);
    place /= extents[d];
  }
  return result;
}

// Positions of the maxima in the whole data: every window's elements side by side, the first
// largest of them, where it was read in its plane, and where the plane begins.
Result<Expr> positions_of_maxima(NodeContext& node, const Window& window, const Shape& pooled) {
  const Shape& data = node.shape(0);
  if (num_elements(pooled) == 0) return node.full(DType::kInt64, pooled, 0);
  if (num_elements(data) == 0) return unsupported("positions of maxima of no data");
  const Ints extents(data.begin() + 2, data.end()), windows(pooled.begin() + 2, pooled.end());
  TRY(check_computed_shape(window.kernel));
  const int64_t plane = num_elements(extents), count = num_elements(windows);
  const int64_t taps = num_elements(window.kernel), planes = data[0] * data[1];
  if (taps > kMaxFoldedIntegers / count || planes > kMaxFoldedIntegers)
    return unsupported("positions of maxima in {} windows of {} elements", count, taps);
  Tensor places = places_of_taps(window, extents, windows);
  Expr flat = TRY(node.reshape(node.in(0), {planes, plane}));
  Expr values = TRY(node.call("take", {flat, node.constant_of(places)}, {{"axis", int64_t{1}}}));
  values = TRY(node.reshape(values, {planes, count, taps}));
  Expr tap = TRY(node.call("argmax", {values}, {{"axis", int64_t{2}}}));
  Tensor first = Tensor::empty(DType::kInt64, {1, count});
  for (int64_t i = 0; i < count; ++i) first.data<int64_t>()[i] = i * taps;
  tap = TRY(node.call("add", {tap, node.constant_of(first)}));
  const bool by_columns = TRY(node.flag("storage_order", false));
  Tensor shown = by_columns ? places.clone() : places;
  for (int64_t i = 0; by_columns && i < shown.size(); ++i)
    shown.data<int64_t>()[i] = transposed_place(shown.data<int64_t>()[i], extents);
  Expr place = TRY(node.call("take", {node.constant_of(shown), tap}, {{"axis", int64_t{0}}}));
  Tensor begins = Tensor::empty(DType::kInt64, {planes, 1});
  for (int64_t i = 0; i < planes; ++i) begins.data<int64_t>()[i] = i * plane;
  return node.reshape(TRY(node.call("add", {place, node.constant_of(begins)})), pooled);
}

Result<Outputs> convert_max_pool(NodeContext& node) {
  const Window window = TRY(read_window(node, node.shape(0), {}));
  Outputs outputs = {TRY(node.call(TRY(op_of_rank("nn.max_pool", window.rank())), {node.in(0)},
                                   TRY(pool_attrs(node, window))))};
  if (node.wants(1))
    outputs.push_back(TRY(positions_of_maxima(node, window, shape_of(outputs[0]))));
  return outputs;
}

Result<Expr> convert_average_pool(NodeContext& node) {
  const Window window = TRY(read_window(node, node.shape(0), {}));
  Attrs attrs = TRY(pool_attrs(node, window));
  attrs.set("count_include_pad", TRY(node.flag("count_include_pad", false)));
  return node.call(TRY(op_of_rank("nn.avg_pool", window.rank())), {node.in(0)}, std::move(attrs));
}

Converter global_pool(const char* stem) {
  return single([stem](NodeContext& node) -> Result<Expr> {
    if (node.rank(0) < 3) return bad_model("data of rank {}, at least 3 is needed", node.rank(0));
    return node.call(TRY(op_of_rank(stem, static_cast<size_t>(node.rank(0)) - 2)), {node.in(0)});
  });
}

// |data|^p.
Result<Expr> powered(NodeContext& node, int64_t p) {
  Expr magnitude = TRY(node.call("abs", {node.in(0)}));
  if (p == 1) return magnitude;
  if (p == 2) return node.call("multiply", {node.in(0), node.in(0)});
  Expr exponent = TRY(node.scalar_like(node.in(0), static_cast<double>(p)));
  return node.call("power", {magnitude, exponent});
}

// data^(1/p).
Result<Expr> rooted(NodeContext& node, const Expr& data, int64_t p) {
  if (p == 1) return data;
  if (p == 2) return node.call("sqrt", {data});
  return node.call("power", {data, TRY(node.scalar_like(data, 1.0 / static_cast<double>(p)))});
}

Result<int64_t> read_p(const NodeContext& node) {
  const int64_t p = TRY(node.integer("p", 2));
  if (p < 1) return bad_model("p is {}, at least 1 is needed", p);
  return p;
}

// The p-norm of a window: the mean (padding counted) times the window's size is the sum.
Result<Expr> convert_lp_pool(NodeContext& node) {
  const int64_t p = TRY(read_p(node));
  const Window window = TRY(read_window(node, node.shape(0), {}));
  Attrs attrs = TRY(pool_attrs(node, window));
  if (attrs.flag("ceil_mode")) return unsupported("ceil_mode");
  attrs.set("count_include_pad", true);
  Expr powers = TRY(powered(node, p));
  Expr mean =
      TRY(node.call(TRY(op_of_rank("nn.avg_pool", window.rank())), {powers}, std::move(attrs)));
  const double count = static_cast<double>(product(window.kernel, 0, window.rank()));
  Expr sum = TRY(node.call("multiply", {mean, TRY(node.scalar_like(mean, count))}));
  return rooted(node, sum, p);
}

Result<Expr> convert_global_lp_pool(NodeContext& node) {
  const int64_t p = TRY(read_p(node));
  Ints axes;
  for (int64_t axis = 2; axis < node.rank(0); ++axis) axes.push_back(axis);
  Expr sum = TRY(node.call("sum", {TRY(powered(node, p))}, {{"axis", axes}, {"keepdims", true}}));
  return rooted(node, sum, p);
}

}  // namespace

ConverterRows pool_converters() {
  return {
      {"AveragePool", 1, 1, single(convert_average_pool)},
      {"GlobalAveragePool", 1, 1, global_pool("nn.global_avg_pool")},
      {"GlobalLpPool", 1, 1, single(convert_global_lp_pool)},
      {"GlobalMaxPool", 1, 1, global_pool("nn.global_max_pool")},
      {"LpPool", 1, 1, single(convert_lp_pool)},
      {"MaxPool", 1, 1, convert_max_pool},
  };
}

}  // namespace collage::frontend
