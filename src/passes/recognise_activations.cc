#include "passes/recognise_activations.h"

#include <cmath>

#include "ir/matcher.h"
#include "passes/constants.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// a * b * c in every association; the matcher tries both orders of each product.
DFPattern product(const DFPattern& a, const DFPattern& b, const DFPattern& c) {
  auto times = [](const DFPattern& x, const DFPattern& y) { return is_op("multiply")(x, y); };
  return times(times(a, b), c) | times(times(a, c), b) | times(a, times(b, c));
}

// x * c, written as a product or as a quotient
DFPattern scaled(const DFPattern& x, double c) {
  return is_op("multiply")(x, is_scalar(c)) | is_op("divide")(x, is_scalar(1 / c));
}

// x * 0.5 * gate in every association, with 0.5 as a factor or 2 as a divisor
DFPattern half_gated(const DFPattern& x, const DFPattern& gate) {
  DFPattern two = is_scalar(2);
  return product(x, is_scalar(0.5), gate) | is_op("divide")(is_op("multiply")(x, gate), two) |
         is_op("multiply")(is_op("divide")(x, two), gate) |
         is_op("multiply")(x, is_op("divide")(gate, two));
}

struct Idiom {
  DFPattern root, data;
  std::string_view op;
  Attrs attrs;
};

Idiom gelu_erf() {
  DFPattern x = wildcard();
  DFPattern gate = is_op("add")(is_op("erf")(scaled(x, std::sqrt(0.5))), is_scalar(1));
  return {half_gated(x, gate), x, "nn.gelu", {{"approximate", std::string("none")}}};
}

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Idiom gelu_tanh() {
  DFPattern x = wildcard();
  DFPattern square = is_op("multiply")(x, x) | is_op("power")(x, is_scalar(2));
  DFPattern cube = is_op("power")(x, is_scalar(3)) | is_op("multiply")(square, x);
  DFPattern tail = is_op("multiply")(cube, is_scalar(0.044715)) |
                   is_op("multiply")(square, is_op("multiply")(x, is_scalar(0.044715))) |
                   is_op("multiply")(is_op("multiply")(square, is_scalar(0.044715)), x);
  double root = std::sqrt(2 / M_PI);
  DFPattern sum = is_op("multiply")(is_op("add")(x, tail), is_scalar(root));
  // sqrt(2/pi) x (1 + 0.044715 x^2)
  DFPattern factored =
      product(x, is_op("add")(is_op("multiply")(square, is_scalar(0.044715)), is_scalar(1)),
              is_scalar(root));
  DFPattern gate = is_op("add")(is_op("tanh")(sum | factored), is_scalar(1));
  return {half_gated(x, gate), x, "nn.gelu", {{"approximate", std::string("tanh")}}};
}

Idiom silu() {
  DFPattern x = wildcard();
  return {is_op("multiply")(x, is_op("sigmoid")(x)), x, "nn.silu", {}};
}

Idiom mish() {
  DFPattern x = wildcard();
  return {is_op("multiply")(x, is_op("tanh")(is_op("nn.softplus")(x))), x, "nn.mish", {}};
}

Idiom softplus() {
  DFPattern x = wildcard();
  return {is_op("log")(is_op("add")(is_op("exp")(x), is_scalar(1))), x, "nn.softplus", {}};
}

bool holds(const Expr& expr, const char* name, double value) {
  double actual = as<CallNode>(expr)->attrs.real(name);
  return std::abs(actual - value) <= 1e-5 * std::max(1.0, std::abs(value));
}

// clip(x + 3, 0, 6)
DFPattern clipped(const DFPattern& x) {
  return DFPattern(is_op("clip")(is_op("add")(x, is_scalar(3))))
      .where("from 0 to 6",
             [](const Expr& e) { return holds(e, "a_min", 0) && holds(e, "a_max", 6); });
}

Idiom hard_sigmoid() {
  DFPattern x = wildcard();
  return {scaled(clipped(x), 1.0 / 6), x, "nn.hard_sigmoid", {{"alpha", 1.0 / 6}, {"beta", 0.5}}};
}

Idiom hard_swish() {
  DFPattern x = wildcard();
  DFPattern gate = DFPattern(is_op("nn.hard_sigmoid")(x)).where("1/6, 1/2", [](const Expr& e) {
    return holds(e, "alpha", 1.0 / 6) && holds(e, "beta", 0.5);
  });
  return {is_op("multiply")(x, gate) | scaled(is_op("multiply")(x, clipped(x)), 1.0 / 6) |
              is_op("multiply")(clipped(x), scaled(x, 1.0 / 6)),
          x,
          "nn.hard_swish",
          {}};
}

Result<Expr> recognise(const Expr& expr, const Idiom& idiom) {
  if (!is_float(expr->tensor_type().dtype)) return Expr();
  std::optional<Match> found = match(idiom.root, expr);
  if (!found) return Expr();
  Expr data = (*found)[idiom.data];
  if (!(data->type() == expr->type())) return Expr();
  return make_call(idiom.op, {data}, idiom.attrs, expr->origin());
}

template <Idiom (*make)()>
Result<Expr> apply(const Expr& expr, const Uses&) {
  static const Idiom kIdiom = make();
  return recognise(expr, kIdiom);
}

const std::vector<RewriteRule> kRecogniseActivationsRules = {
    {"GELU by erf", {"multiply", "divide"}, apply<gelu_erf>},
    {"GELU by tanh", {"multiply", "divide"}, apply<gelu_tanh>},
    {"SiLU", {"multiply"}, apply<silu>},
    {"softplus", {"log"}, apply<softplus>},
    {"mish", {"multiply"}, apply<mish>},
    {"hard swish", {"multiply", "divide"}, apply<hard_swish>},
    {"hard sigmoid", {"multiply", "divide"}, apply<hard_sigmoid>},
};

}  // namespace

Result<Function> recognise_activations(const Function& function) {
  return apply_rules(function, kRecogniseActivationsRules);
}

}  // namespace collage
