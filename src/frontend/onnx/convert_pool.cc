// Pools over sliding windows and over whole images.
#include <cmath>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

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

// The second output, positions of the maxima, is not made.
Result<Expr> convert_max_pool(NodeContext& node) {
  const Window window = TRY(read_window(node, node.shape(0), {}));
  return node.call(TRY(op_of_rank("nn.max_pool", window.rank())), {node.in(0)},
                   TRY(pool_attrs(node, window)));
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
      {"MaxPool", 1, 1, single(convert_max_pool)},
  };
}

}  // namespace collage::frontend
