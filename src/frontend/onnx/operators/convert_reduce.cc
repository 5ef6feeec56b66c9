// Reductions, and the search for the largest and smallest element. Axes come as an attribute or, in
// later operator sets, as an input; absent axes mean all of them.
#include <functional>
#include <utility>

#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

struct Reduction {
  Ints axes;
  bool keepdims;
  bool noop;  // no axes are given and that means none
};

Result<Reduction> read_reduction(NodeContext& node) {
  Reduction reduction{{}, TRY(node.flag("keepdims", true)), false};
  const auto given = TRY(node.ints_from(1, "axes"));
  if (given && !given->empty()) {
    reduction.axes = TRY(normal_axes(*given, node.rank(0)));
    return reduction;
  }
  reduction.noop = TRY(node.flag("noop_with_empty_axes", false));
  if (!reduction.noop)
    for (int64_t axis = 0; axis < node.rank(0); ++axis) reduction.axes.push_back(axis);
  return reduction;
}

Result<Expr> reduce(NodeContext& node, const char* op, const Expr& data, const Reduction& how) {
  if (how.axes.empty()) return data;
  return node.call(op, {data}, {{"axis", how.axes}, {"keepdims", how.keepdims}});
}

using ElementStep = std::function<Result<Expr>(NodeContext&, const Expr&)>;

ElementStep unary_step(const char* op) {
  return [op](NodeContext& node, const Expr& data) { return node.call(op, {data}); };
}
Result<Expr> keep(NodeContext&, const Expr& data) { return data; }
Result<Expr> square(NodeContext& node, const Expr& data) {
  return node.call("multiply", {data, data});
}

// after(reduce(before(data))).
Converter reduction(const char* op, ElementStep before = keep, ElementStep after = keep) {
  return single([=](NodeContext& node) -> Result<Expr> {
    const Reduction how = TRY(read_reduction(node));
    Expr data = TRY(before(node, node.in(0)));
    return after(node, TRY(reduce(node, op, data, how)));
  });
}

// The largest boolean is whether any is set.
Converter extremum(const char* op, const char* of_bools) {
  return single([=](NodeContext& node) -> Result<Expr> {
    const Reduction how = TRY(read_reduction(node));
    return reduce(node, node.dtype(0) == DType::kBool ? of_bools : op, node.in(0), how);
  });
}

// m + log(sum(exp(x - m))) with m = max(x), so that nothing overflows.
Result<Expr> convert_log_sum_exp(NodeContext& node) {
  Reduction how = TRY(read_reduction(node));
  if (how.axes.empty()) return node.in(0);
  if (num_elements(node.shape(0)) == 0)
    return node.call("log", {TRY(reduce(node, "sum", node.in(0), how))});
  const bool keepdims = std::exchange(how.keepdims, true);
  Expr largest = TRY(reduce(node, "max", node.in(0), how));
  Expr shifted = TRY(node.call("subtract", {node.in(0), largest}));
  Expr sum = TRY(reduce(node, "sum", TRY(node.call("exp", {shifted})), how));
  Expr result = TRY(node.call("add", {TRY(node.call("log", {sum})), largest}));
  if (keepdims) return result;
  Shape shape;
  for (int64_t i = 0; i < node.rank(0); ++i)
    if (std::find(how.axes.begin(), how.axes.end(), i) == how.axes.end())
      shape.push_back(node.shape(0)[static_cast<size_t>(i)]);
  return node.reshape(result, std::move(shape));
}

Converter arg(const char* op) {
  return single([op](NodeContext& node) -> Result<Expr> {
    const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", 0)), node.rank(0)));
    return node.call(op, {node.in(0)},
                     {{"axis", axis},
                      {"keepdims", TRY(node.flag("keepdims", true))},
                      {"select_last_index", TRY(node.flag("select_last_index", false))}});
  });
}

}  // namespace

ConverterRows reduce_converters() {
  return {
      {"ArgMax", 1, 1, arg("argmax")},
      {"ArgMin", 1, 1, arg("argmin")},
      {"ReduceL1", 1, 2, reduction("sum", unary_step("abs"))},
      {"ReduceL2", 1, 2, reduction("sum", square, unary_step("sqrt"))},
      {"ReduceLogSum", 1, 2, reduction("sum", keep, unary_step("log"))},
      {"ReduceLogSumExp", 1, 2, single(convert_log_sum_exp)},
      {"ReduceMax", 1, 2, extremum("max", "any")},
      {"ReduceMean", 1, 2, reduction("mean")},
      {"ReduceMin", 1, 2, extremum("min", "all")},
      {"ReduceProd", 1, 2, reduction("prod")},
      {"ReduceSum", 1, 2, reduction("sum")},
      {"ReduceSumSquare", 1, 2, reduction("sum", square)},
  };
}

}  // namespace collage::frontend
