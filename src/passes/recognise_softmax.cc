#include "passes/recognise_softmax.h"

#include "ir/matcher.h"
#include "passes/constants.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// The axis when the call reduces over one and keeps it.
std::optional<int64_t> single_axis(const Expr& reduction) {
  const auto* call = as<CallNode>(reduction);
  auto rank = static_cast<int64_t>(call->args[0]->tensor_type().shape.size());
  if (!call->attrs.flag("keepdims") || call->attrs.flag("exclude")) return std::nullopt;
  if (const auto* one = std::get_if<int64_t>(call->attrs.find("axis")))
    return from_start(*one, rank);
  const auto* list = std::get_if<Ints>(call->attrs.find("axis"));
  if (list == nullptr || list->size() != 1) return std::nullopt;
  return from_start((*list)[0], rank);
}

struct SoftmaxSpelling {
  DFPattern root, data, max, sum;
};
const SoftmaxSpelling& softmax_spelling() {
  static const SoftmaxSpelling kSpelling = [] {
    DFPattern data = wildcard(), max = is_op("max")(data);
    DFPattern exponent = is_op("exp")(is_op("subtract")(data, max)) | is_op("exp")(data);
    DFPattern sum = is_op("sum")(exponent);
    return SoftmaxSpelling{is_op("divide")(exponent, sum), data, max, sum};
  }();
  return kSpelling;
}

// exp(x - max(x)) / sum(exp(x - max(x))) to nn.softmax
Result<Expr> softmax(const Expr& expr, const Uses&) {
  const SoftmaxSpelling& s = softmax_spelling();
  std::optional<Match> found = match(s.root, expr);
  if (!found || !is_float(expr->tensor_type().dtype)) return Expr();
  std::optional<int64_t> axis = single_axis((*found)[s.sum]);
  Expr max = (*found)[s.max];
  if (!axis || (max != nullptr && single_axis(max) != axis)) return Expr();
  auto rank = static_cast<int64_t>(expr->tensor_type().shape.size());
  return make_call("nn.softmax", {(*found)[s.data]}, {{"axis", *axis - rank}}, expr->origin());
}

// log(softmax(x)) to nn.log_softmax
Result<Expr> log_softmax(const Expr& expr, const Uses& uses) {
  const Expr& arg = as<CallNode>(expr)->args[0];
  const CallNode* inner = as_op(arg, "nn.softmax");
  if (inner == nullptr || !uses.once(arg)) return Expr();
  return make_call("nn.log_softmax", inner->args, inner->attrs, expr->origin());
}

const std::vector<RewriteRule> kRecogniseSoftmaxRules = {
    {"softmax", {"divide"}, softmax},
    {"log softmax", {"log"}, log_softmax},
};

}  // namespace

Result<Function> recognise_softmax(const Function& function) {
  return apply_rules(function, kRecogniseSoftmaxRules);
}

}  // namespace collage
