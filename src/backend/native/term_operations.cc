#include "backend/native/term_operations.h"

#include <cstdlib>

#include "backend/native/halide_conversions.h"
#include "backend/native/halide_math.h"
#include "backend/native/real_limits.h"
#include "base/check.h"
#include "tensor_program/emitter.h"
#include "tensor_program/magnitude.h"

namespace collage::native {

namespace tp = tensor_program;
using HExpr = Halide::Expr;

namespace {

/// What to divide by in place of a negative constant, which has an opposite; else undefined.
HExpr opposite(const HExpr& b) {
  const auto number = Halide::Internal::as_const_int(b);
  return number && *number < 0 && !b.type().is_min(*number) ? Halide::Internal::simplify(-b)
                                                            : HExpr();
}

/// `exact`, for which Halide takes the bounds of `like`: of the same value, and bounded closely,
/// but not defined for the type's least value.
HExpr bounded_as(const HExpr& exact, const HExpr& like) {
  return Halide::unsafe_promise_clamped(exact, like, like);
}

/// Halide's remainders are never negative; those of programs have the divisor's sign. By zero, both
/// say zero.
HExpr quotient(const HExpr& a, const HExpr& b) {
  if (!b.type().is_int() || Halide::Internal::is_positive_const(b)) return a / b;
  if (const HExpr c = opposite(b); c.defined())
    return bounded_as(-(a / c) - Halide::cast(a.type(), a % c != 0), -a / c);
  return a / b - Halide::cast(a.type(), b < 0 && a % b != 0);
}
HExpr remainder(const HExpr& a, const HExpr& b) {
  if (!b.type().is_int() || Halide::Internal::is_positive_const(b)) return a % b;
  if (const HExpr c = opposite(b); c.defined())
    return bounded_as(Halide::select(a % c == 0, 0, a % c - c), -(-a % c));
  const HExpr r = a % b;
  return Halide::select(b < 0 && r != 0, r + b, r);
}

/// The constant in min(x, constant) or max(x, constant), whole and within ±2^22.
std::optional<int64_t> near_limit(const tp::Term& term, tp::TermOp op) {
  const auto limit = term->op == op ? tp::whole_limit(term) : std::nullopt;
  return limit && std::abs(*limit) <= 1 << 22 ? limit : std::nullopt;
}

/// x and c of x + c, or of x for c = 0.
std::pair<tp::Term, int64_t> without_constant(const tp::Term& sum) {
  if (sum->op == tp::TermOp::kAdd)
    if (const auto added = tp::known_integer(sum->args[1])) return {sum->args[0], *added};
  return {sum, 0};
}

/// What int32(x) converts; undefined where it is no such term.
tp::Term made_integer(const tp::Term& term) {
  const bool is_cast = term->op == tp::TermOp::kCast && term.dtype() == DType::kInt32;
  return is_cast && term->args[0].dtype() == DType::kFloat32 ? term->args[0] : tp::Term();
}

}  // namespace

HExpr constant(const tp::TermNode& term) {
  if (term.dtype == DType::kBool)
    return term.integer != 0 ? Halide::Internal::const_true() : Halide::Internal::const_false();
  if (term.dtype == DType::kFloat32) return HExpr(static_cast<float>(term.real));
  if (is_float(term.dtype)) return Halide::Internal::make_const(halide_type(term.dtype), term.real);
  return Halide::Internal::make_const(halide_type(term.dtype), term.integer);
}

const tp::Term* saturated_by(const tp::TermNode& term) {
  if (term.op != tp::TermOp::kCast || !tp::is_narrow_integer(term.dtype) ||
      term.args[0].dtype() != DType::kInt32)
    return nullptr;
  const tp::Term& low = term.args[0];
  const auto is_end = [](const tp::Term& bound, tp::TermOp op, const tp::Term& end) {
    return bound->op == op && tp::is_integer_constant(bound->args[1], end->integer);
  };
  if (!is_end(low, tp::TermOp::kMax, tp::lowest(term.dtype)) ||
      !is_end(low->args[0], tp::TermOp::kMin, tp::highest(term.dtype)))
    return nullptr;
  return &low->args[0]->args[0];
}

std::optional<RoundedWithin> rounded_within(const tp::Term& term) {
  if (term.dtype() != DType::kFloat32) return std::nullopt;
  const auto low = near_limit(term, tp::TermOp::kMax);
  const auto high = low ? near_limit(term->args[0], tp::TermOp::kMin) : std::nullopt;
  if (!high || *low > *high || term->args[0]->args[0]->op != tp::TermOp::kRound)
    return std::nullopt;
  return RoundedWithin{term->args[0]->args[0]->args[0], *low, *high};
}

std::optional<Quantised> quantised_by(const tp::TermNode& term) {
  if (const tp::Term* whole = saturated_by(term)) {
    const auto [integer, added] = without_constant(*whole);
    const tp::Term rounded = made_integer(integer);
    if (!rounded.defined() || rounded->op != tp::TermOp::kRound || std::abs(added) > 1 << 20)
      return std::nullopt;
    const int64_t low = tp::lowest(term.dtype)->integer, high = tp::highest(term.dtype)->integer;
    return Quantised{{rounded->args[0], low - added, high - added}, added};
  }
  if (term.op != tp::TermOp::kCast || !tp::is_narrow_integer(term.dtype)) return std::nullopt;
  const auto [integer, added] = without_constant(term.args[0]);
  const tp::Term within = made_integer(integer);
  const auto steps = within.defined() ? rounded_within(within) : std::nullopt;
  if (!steps || steps->low + added < tp::lowest(term.dtype)->integer ||
      steps->high + added > tp::highest(term.dtype)->integer)
    return std::nullopt;
  return Quantised{*steps, added};
}

HExpr operation(const tp::TermNode& term, const std::vector<HExpr>& args) {
  const HExpr& a = args[0];
  const HExpr& b = args.size() > 1 ? args[1] : a;
  switch (term.op) {
    case tp::TermOp::kAdd:
      return a + b;
    case tp::TermOp::kSubtract:
      return a - b;
    case tp::TermOp::kMultiply:
      return a * b;
    case tp::TermOp::kDivide:
      return quotient(a, b);
    case tp::TermOp::kModulo:
      return remainder(a, b);
    case tp::TermOp::kMin:
      return a.type().is_float() ? smaller(a, b) : Halide::min(a, b);
    case tp::TermOp::kMax:
      return a.type().is_float() ? larger(a, b) : Halide::max(a, b);
    case tp::TermOp::kEqual:
      return a == b;
    case tp::TermOp::kNotEqual:
      return a != b;
    case tp::TermOp::kLess:
      return a < b;
    case tp::TermOp::kLessEqual:
      return a <= b;
    case tp::TermOp::kGreater:
      return a > b;
    case tp::TermOp::kGreaterEqual:
      return a >= b;
    case tp::TermOp::kAnd:
      return a && b;
    case tp::TermOp::kOr:
      return a || b;
    case tp::TermOp::kNot:
      return !a;
    case tp::TermOp::kNegate:
      return -a;
    case tp::TermOp::kSelect:
      return Halide::select(a, b, args[2]);
    case tp::TermOp::kCast:
      return converted(a, term.dtype);
    case tp::TermOp::kLikely:
      return Halide::likely(a);
    case tp::TermOp::kExp:
      return vector_exp(a);
    case tp::TermOp::kLog:
      return vector_log(a);
    case tp::TermOp::kSqrt:
      return Halide::sqrt(a);
    case tp::TermOp::kErf:
      return vector_erf(a);
    case tp::TermOp::kAbs:
      return Halide::cast(a.type(), Halide::abs(a));
    case tp::TermOp::kCeil:
      return Halide::ceil(a);
    case tp::TermOp::kFloor:
      return Halide::floor(a);
    case tp::TermOp::kRound:
      return Halide::round(a);
    case tp::TermOp::kTrunc:
      return Halide::trunc(a);
    case tp::TermOp::kSin:
      return Halide::sin(a);
    case tp::TermOp::kCos:
      return Halide::cos(a);
    case tp::TermOp::kTanh:
      return vector_tanh(a);
    case tp::TermOp::kPower:
      return Halide::pow(a, b);
    case tp::TermOp::kIsNan:
      return is_not_a_number(a);
    case tp::TermOp::kQuotient:
      return nearest_quotient(a, b);
    case tp::TermOp::kConstant:
    case tp::TermOp::kVar:
    case tp::TermOp::kLoad:
      break;
  }
  COLLAGE_CHECK(false, "a leaf among the operations");
  return {};
}

HExpr combined(tp::Combine combine, const HExpr& a, const HExpr& b) {
  switch (combine) {
    case tp::Combine::kSet:
      return b;
    case tp::Combine::kSum:
      return a + b;
    case tp::Combine::kProduct:
      return a * b;
    case tp::Combine::kMax:
      return a.type().is_float() ? larger(a, b) : Halide::max(a, b);
    case tp::Combine::kMin:
      return a.type().is_float() ? smaller(a, b) : Halide::min(a, b);
  }
  return a;
}

}  // namespace collage::native
