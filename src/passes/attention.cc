#include "passes/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/visitor.h"
#include "passes/constants.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// What is added to a score at or below this hides it: its weight is zero in fp32 whatever the
// other scores of a sane model are.
constexpr double kHidden = -9999;

// x when expr is x times (over) a constant scalar; the factor is multiplied into `scale`.
Expr without_factor(const Expr& expr, double& scale) {
  for (std::string_view name : {"multiply", "divide"}) {
    const CallNode* call = as_op(expr, name);
    if (call == nullptr) continue;
    for (size_t i = 0; i < (name == "multiply" ? 2 : 1); ++i) {
      std::optional<double> factor = scalar_value(call->args[1 - i]);
      if (!factor || !std::isfinite(*factor) || *factor == 0 ||
          !(call->args[i]->type() == expr->type()))
        continue;
      scale *= name == "multiply" ? *factor : 1 / *factor;
      return call->args[i];
    }
  }
  return nullptr;
}

Result<Expr> times(const Expr& expr, double factor) {
  if (factor == 1) return expr;
  if (const auto* constant = as<ConstantNode>(expr))
    return make_constant(map_constant(constant->value, [&](double v) { return v * factor; }));
  Tensor by =
      map_constant(Tensor::zeros(expr->tensor_type().dtype, {}), [&](double) { return factor; });
  return make_call("multiply", {expr, make_constant(by)});
}

// What is found between the softmax and the product of queries and keys, from the outside in.
struct Parts {
  Expr query, key, mask;
  double scale = 1;
  int64_t rank = 0;  // of the weights
};

// Returns the shape without dimensions of one in front, as far as it has more than `rank`.
Shape without_ones(Shape shape, size_t rank) {
  const auto excess = static_cast<std::ptrdiff_t>(shape.size() - std::min(shape.size(), rank));
  const auto end = shape.begin() + excess;
  shape.erase(shape.begin(), std::find_if(shape.begin(), end, [](int64_t d) { return d != 1; }));
  return shape;
}

// What a reshape that adds or drops dimensions of one in front is of, else null.
Expr without_reshape(const Expr& expr) {
  const CallNode* reshape = as_op(expr, "reshape");
  if (reshape == nullptr) return nullptr;
  const Expr& data = reshape->args[0];
  const bool same =
      without_ones(data->tensor_type().shape, 0) == without_ones(expr->tensor_type().shape, 0);
  return same ? data : nullptr;
}

// The scores' mask from where(condition, scores, hidden) as something to add; null when the
// condition is not known or a row is hidden whole (then the two differ).
Expr mask_of_where(const CallNode& where, size_t scores_index) {
  const auto* condition = as<ConstantNode>(where.args[0]);
  std::optional<double> fill = uniform_value(where.args[3 - scores_index]);
  if (condition == nullptr || !fill || !(*fill <= kHidden)) return nullptr;
  const Tensor& seen = condition->value;
  const Shape& shape = seen.shape();
  if (shape.empty() || seen.size() == 0) return nullptr;
  Tensor mask = Tensor::zeros(where.tensor_type().dtype, shape);
  bool visible_is = scores_index == 1;
  int64_t row = shape.back();
  for (int64_t i = 0; i < seen.size(); i += row) {
    bool any = false;
    for (int64_t j = i; j < i + row; ++j)
      any = any || (seen.element_as_int64(j) != 0) == visible_is;
    if (!any) return nullptr;
  }
  int64_t next = 0;
  return make_constant(map_constant(mask, [&](double) {
    return (seen.element_as_int64(next++) != 0) == visible_is ? 0.0 : *fill;
  }));
}

Result<bool> add_mask(Parts& parts, const Expr& mask) {
  // Met inside a factor that was passed already: the factor holds for the mask too.
  Expr scaled = TRY(times(mask, parts.scale));
  if (rank_of(mask) > parts.rank)
    scaled = TRY(make_call(
        "reshape", {scaled},
        {{"newshape", without_ones(mask->tensor_type().shape, static_cast<size_t>(parts.rank))}}));
  parts.mask = parts.mask == nullptr ? scaled : TRY(make_call("add", {parts.mask, scaled}));
  return true;
}

// Whether a product of queries and keys is what remains after factors and masks are taken off.
bool leads_to_product(Expr expr) {
  double ignored = 1;
  for (int steps = 0; steps < 8; ++steps) {
    if (as_op(expr, "nn.matmul") != nullptr) return true;
    if (Expr inner = without_factor(expr, ignored)) {
      expr = inner;
    } else if (Expr data = without_reshape(expr)) {
      expr = data;
    } else if (const CallNode* add = as_op(expr, "add")) {
      expr = add->args[leads_to_product(add->args[0]) ? 0 : 1];
    } else if (const CallNode* where = as_op(expr, "where")) {
      expr = where->args[scalar_value(where->args[2]) ? 1 : 2];
    } else {
      return false;
    }
  }
  return false;
}

// The keys as [.., tokens, size] from the right operand of the product with queries.
Result<Expr> keys_of(Expr operand, bool transposed, double& scale) {
  while (Expr inner = without_factor(operand, scale)) operand = inner;
  if (transposed) return operand;
  if (const CallNode* reshape = as_op(operand, "reshape")) {
    // Of what stands in front of tokens and sizes alone, as exports of PyTorch write it.
    const Shape &from = reshape->args[0]->tensor_type().shape, &to = operand->tensor_type().shape;
    if (from.size() < 2 || to.size() < 2 || !std::equal(to.end() - 2, to.end(), from.end() - 2))
      return Expr();
    const Expr keys = TRY(keys_of(reshape->args[0], false, scale));
    if (keys == nullptr) return Expr();
    Shape shape = to;
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return make_call("reshape", {keys}, {{"newshape", Ints(shape)}}, reshape->origin());
  }
  const CallNode* transpose = as_op(operand, "transpose");
  if (transpose == nullptr) return Expr();
  const auto* given = std::get_if<Ints>(transpose->attrs.find("axes"));
  int64_t rank = rank_of(operand);
  if (given == nullptr || static_cast<int64_t>(given->size()) != rank) return Expr();
  Ints axes = from_start(*given, rank);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  Expr data = transpose->args[0];
  while (Expr inner = without_factor(data, scale)) data = inner;
  if (std::is_sorted(axes.begin(), axes.end())) return data;
  // Turning the other way round what was to be transposed anyway.
  return make_call("transpose", {data}, {{"axes", axes}}, transpose->origin());
}

Result<bool> take_apart(Expr scores, const Uses& uses, Parts& parts) {
  for (int steps = 0; steps < 8; ++steps) {
    if (!uses.once(scores)) return false;
    const CallNode* product = as_op(scores, "nn.matmul");
    if (product != nullptr) {
      if (product->attrs.flag("transpose_a")) return false;
      double scale = parts.scale;
      parts.query = product->args[0];
      while (Expr inner = without_factor(parts.query, scale)) parts.query = inner;
      parts.key = TRY(keys_of(product->args[1], product->attrs.flag("transpose_b"), scale));
      parts.scale = scale;
      return parts.key != nullptr;
    }
    Expr inner = without_factor(scores, parts.scale);
    if (inner == nullptr) inner = without_reshape(scores);
    if (inner != nullptr) {
      scores = inner;
      continue;
    }
    if (const CallNode* add = as_op(scores, "add")) {
      size_t index = leads_to_product(add->args[0]) ? 0 : 1;
      if (!(add->args[index]->type() == scores->type())) return false;
      TRY(add_mask(parts, add->args[1 - index]));
      scores = add->args[index];
      continue;
    }
    const CallNode* where = as_op(scores, "where");
    if (where == nullptr) return false;
    size_t index = leads_to_product(where->args[1]) ? 1 : 2;
    if (!(where->args[index]->type() == scores->type())) return false;
    Expr mask = mask_of_where(*where, index);
    if (mask == nullptr) return false;
    TRY(add_mask(parts, mask));
    scores = where->args[index];
  }
  return false;
}

// Whether a constant mask hides exactly what comes after each token.
bool is_causal(const Expr& mask, int64_t queries, int64_t keys) {
  const auto* constant = as<ConstantNode>(mask);
  if (constant == nullptr || queries != keys || queries < 2 ||
      constant->value.size() != queries * keys)
    return false;
  const Shape& shape = constant->value.shape();
  if (shape.size() < 2 || shape.back() != keys || shape[shape.size() - 2] != queries) return false;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      double value = constant->value.element_as_double(i * keys + j);
      if (j <= i ? value != 0 : !(value <= kHidden)) return false;
    }
  return true;
}

// The where(isnan(weights), 0, weights) that an expression is, or null.
const CallNode* guard_of_nan(const Expr& expr, const Uses& uses) {
  const CallNode* where = as_op(expr, "where");
  if (where == nullptr || !uses.once(expr)) return nullptr;
  const CallNode* test = as_op(where->args[0], "isnan");
  const bool guards = test != nullptr && test->args[0] == where->args[2] &&
                      scalar_value(where->args[1]) == 0.0 && uses.once(where->args[0]) &&
                      where->args[2]->type() == expr->type();
  return guards ? where : nullptr;
}

bool is_finite(const Expr& mask) {
  if (const auto* constant = as<ConstantNode>(mask)) {
    for (int64_t i = 0; i < constant->value.size(); ++i)
      if (!std::isfinite(constant->value.element_as_double(i))) return false;
    return true;
  }
  if (const CallNode* where = as_op(mask, "where"))
    return is_finite(where->args[1]) && is_finite(where->args[2]);
  for (std::string_view moved : {"reshape", "broadcast_to", "expand_dims"})
    if (const CallNode* call = as_op(mask, moved)) return is_finite(call->args[0]);
  return false;
}

// Whether a mask leaves every row a key, whatever the inputs are: else all weights of it are NaN.
bool leaves_keys(const Expr& mask) {
  const auto* constant = as<ConstantNode>(mask);
  if (constant == nullptr || constant->value.shape().empty()) return is_finite(mask);
  const int64_t row = constant->value.shape().back();
  for (int64_t i = 0, seen = 0; i < constant->value.size(); ++i) {
    const double value = constant->value.element_as_double(i);
    if (!(value < std::numeric_limits<double>::infinity())) return false;
    if (i % row == 0) seen = 0;
    seen += std::isfinite(value);
    if (i % row == row - 1 && seen == 0) return false;
  }
  return true;
}

Result<Expr> recognise(const Expr& expr, const Uses& uses) {
  const auto& call = *as<CallNode>(expr);
  const CallNode* guard = guard_of_nan(call.args[0], uses);
  const Expr& weights = guard != nullptr ? guard->args[2] : call.args[0];
  const CallNode* softmax = as_op(weights, "nn.softmax");
  if (softmax == nullptr || uses.of(weights) > (guard != nullptr ? 2 : 1) ||
      call.attrs.flag("transpose_a") || call.attrs.flag("transpose_b") ||
      !is_float(expr->tensor_type().dtype) ||
      from_start(softmax->attrs.integer("axis"), rank_of(weights)) != rank_of(weights) - 1)
    return Expr();
  Parts parts;
  parts.rank = rank_of(weights);
  if (!TRY(take_apart(softmax->args[0], uses, parts))) return Expr();
  const Shape& scores = weights->tensor_type().shape;
  const Expr& value = call.args[1];
  // Same batch dimensions: no broadcasting among operands.
  int64_t rank = rank_of(weights);
  for (const Expr& operand : {parts.query, parts.key, value}) {
    if (rank_of(operand) != rank || rank < 3) return Expr();
    const Shape& shape = operand->tensor_type().shape;
    if (!std::equal(scores.begin(), scores.end() - 2, shape.begin())) return Expr();
  }
  if (guard != nullptr && parts.mask != nullptr && !leaves_keys(parts.mask)) return Expr();
  std::vector<Expr> args = {parts.query, parts.key, value};
  bool causal = false;
  if (parts.mask != nullptr) {
    causal = is_causal(parts.mask, scores[scores.size() - 2], scores.back());
    std::optional<double> uniform = uniform_value(parts.mask);
    if (!causal && !(uniform && *uniform == 0)) args.push_back(parts.mask);
  }
  Result<Expr> attention = make_call(
      "nn.attention", std::move(args),
      {{"scale", parts.scale}, {"causal", causal}, {"zero_nan", guard != nullptr}}, expr->origin());
  if (!attention || !((*attention)->type() == expr->type())) return Expr();
  return attention;
}

const std::vector<RewriteRule> kAttentionRules = {{"attention", {"nn.matmul"}, recognise}};

Expr causal_mask(DType dtype, int64_t queries, int64_t keys) {
  int64_t next = 0;
  return make_constant(map_constant(Tensor::zeros(dtype, {queries, keys}), [&](double) {
    int64_t i = next / keys, j = next++ % keys;
    return j <= i ? 0 : -std::numeric_limits<double>::infinity();
  }));
}

Result<Expr> expand(const CallNode& call) {
  const Expr product = TRY(
      make_call("nn.matmul", {call.args[0], call.args[1]}, {{"transpose_b", true}}, call.origin()));
  const Shape& shape = product->tensor_type().shape;
  Expr scores = TRY(times(product, call.attrs.real("scale")));
  if (call.args.size() > 3)
    scores = TRY(make_call("add", {scores, call.args[3]}, {}, call.origin()));
  if (call.attrs.flag("causal"))
    scores = TRY(make_call(
        "add",
        {scores, causal_mask(scores->tensor_type().dtype, shape[shape.size() - 2], shape.back())},
        {}, call.origin()));
  Expr weights = TRY(make_call("nn.softmax", {scores}, {{"axis", int64_t{-1}}}, call.origin()));
  if (call.attrs.flag("zero_nan")) {
    const Expr none = make_constant(Tensor::zeros(scores->tensor_type().dtype, {}));
    const Expr nan = TRY(make_call("isnan", {weights}, {}, call.origin()));
    weights = TRY(make_call("where", {nan, none, weights}, {}, call.origin()));
  }
  return make_call("nn.matmul", {weights, call.args[2]}, {}, call.origin());
}

}  // namespace

Result<Function> recognise_attention(const Function& function) {
  return apply_rules(function, kAttentionRules);
}

Result<Function> expand_attention(const Function& function) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    if (rebuilt->kind() == ExprKind::kFunction)
      return Expr(TRY(expand_attention(std::static_pointer_cast<const FunctionNode>(rebuilt))));
    const CallNode* call = as_op(rebuilt, "nn.attention");
    return call != nullptr ? expand(*call) : rebuilt;
  });
  return rewriter.rewrite(function);
}

}  // namespace collage
