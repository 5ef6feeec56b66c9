#include "backend/native/codegen/term_operations.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <optional>

#include "backend/native/codegen/halide_conversions.h"
#include "backend/native/codegen/halide_math.h"
#include "backend/native/codegen/real_limits.h"
#include "base/check.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/magnitude.h"

namespace collage::native {

namespace tp = tensor_program;
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

bool is_one_of(const tp::Term& term, std::initializer_list<tp::TermOp> operations) {
  return std::find(operations.begin(), operations.end(), term->op) != operations.end();
}
bool is_real_constant(const tp::Term& term) { return term->op == tp::TermOp::kConstant; }
bool any_arg(const tp::Term& term, const std::function<bool(const tp::Term&)>& test) {
  return std::any_of(term->args.begin(), term->args.end(), test);
}
/// Whether an argument is a constant, of that size if one is given.
bool has_constant(const tp::Term& term, std::optional<double> size = std::nullopt) {
  return any_arg(term, [&](const tp::Term& arg) {
    return is_real_constant(arg) && (!size || std::abs(arg->real) == *size);
  });
}
bool is_product(const tp::Term& term) {
  return is_one_of(term, {tp::TermOp::kMultiply}) ||
         (is_one_of(term, {tp::TermOp::kDivide}) && is_real_constant(term->args[1]));
}
/// By what is no constant.
bool is_quotient(const tp::Term& term) {
  return is_one_of(term, {tp::TermOp::kDivide, tp::TermOp::kQuotient}) && !is_product(term);
}
bool is_reciprocal(const tp::Term& term) {
  return is_quotient(term) && is_real_constant(term->args[0]) && std::abs(term->args[0]->real) == 1;
}
bool is_root(const tp::Term& term) { return term->op == tp::TermOp::kSqrt; }
bool is_root_of(const tp::Term& term, const tp::Term& x) {
  return is_root(term) && tp::same(term->args[0], x);
}
bool is_scaled(const tp::Term& term) {
  return is_one_of(term, {tp::TermOp::kMultiply, tp::TermOp::kDivide}) && has_constant(term);
}
bool is_sum(const tp::Term& term) {
  return is_one_of(term, {tp::TermOp::kAdd, tp::TermOp::kSubtract});
}
bool has_factor(const tp::Term& product, const tp::Term& x) {
  return is_product(product) && any_arg(product, [&](const tp::Term& factor) {
           return !is_real_constant(factor) && tp::same(factor, x);
         });
}

/// Whether the product of the two is made another one than of two factors, if `b` is one itself:
///   (x / y) * z = x * z / y, 1 / y * 1 / z = 1 / (y * z), -(x * y) * z = x * (-y * z)
///   (x * y) * x = x * x * y, (x * 2) * (y * 3) = x * y * 6
///   sqrt(x) * sqrt(y) = sqrt(x * y), x / sqrt(x) = sqrt(x)
/// Of x * (1 / y) = x / y nothing is lost.
bool regroups(const tp::Term& a, const tp::Term& b) {
  if (is_quotient(b))
    return !is_reciprocal(b) || is_quotient(a) || is_product(a) || is_root_of(b->args[1], a);
  if (b->op == tp::TermOp::kNegate) return regroups(a, b->args[0]) || is_product(b->args[0]);
  if (is_product(b) && any_arg(b, is_quotient)) return true;
  return has_factor(b, a) || (is_scaled(a) && is_scaled(b)) || (is_root(a) && is_root(b));
}
/// Whether x * y and x * z, or x * 2 and x, become one product in a sum.
bool have_common_factor(const tp::Term& a, const tp::Term& b) {
  if (is_scaled(b) && has_factor(b, a)) return true;
  return is_product(a) && is_product(b) &&
         any_arg(a, [&](const tp::Term& x) { return !is_real_constant(x) && has_factor(b, x); });
}

/// Whether Halide or LLVM, which take real numbers for finite, would compute something else in
/// place of the operation, and overflow, infinities and NaN make a difference:
///   (x * 16) * 0.1 = x * 1.6, (x + c) - c = x         one operation for two
///   (x * y) / x = y, x * y + x * z = x * (y + z)
///   (x + 1) * y = x * y + y                           infinite parts meet
///   x * 0 = 0, x - x = 0, x / x = 1                   results for nothing
/// It is then computed as it stands. All others may become one operation with what they are part
/// of.
bool loses_ends(const tp::TermNode& term) {
  using tp::TermOp;
  const tp::Term &a = term.args[0], &b = term.args[1];
  const auto is_zero = [](const tp::Term& t) { return is_real_constant(t) && t->real == 0; };
  switch (term.op) {
    case TermOp::kAdd:
      return have_common_factor(a, b) || have_common_factor(b, a) ||
             std::any_of(term.args.begin(), term.args.end(), [](const tp::Term& arg) {
               return arg->op == TermOp::kSubtract || (is_sum(arg) && has_constant(arg));
             });
    case TermOp::kSubtract:
      return have_common_factor(a, b) || have_common_factor(b, a) || is_sum(a) || is_sum(b) ||
             tp::same(a, b);
    case TermOp::kMultiply: {
      if (is_zero(a) || is_zero(b) || regroups(a, b) || regroups(b, a)) return true;
      const bool by_constant = is_real_constant(a) || is_real_constant(b);
      return std::any_of(term.args.begin(), term.args.end(), [&](const tp::Term& arg) {
        if (is_sum(arg)) return has_constant(arg, 1) || (by_constant && any_arg(arg, is_scaled));
        return by_constant && is_scaled(arg);
      });
    }
    case TermOp::kDivide:
      // Of numbers near the ends the reciprocal is none, or has fewer digits.
      if (is_real_constant(b) && (std::abs(b->real) > 0x1p125 || std::abs(b->real) < 0x1p-125))
        return true;
      if (is_zero(a) || tp::same(a, b) || is_quotient(a) || is_quotient(b) || is_root_of(b, a))
        return true;
      return is_real_constant(b) ? is_scaled(a) : is_product(a) || is_product(b);
    default:
      return false;
  }
}

/// A product that is a factor of another: LLVM makes x * (y * z) of (x * y) * z, but not where the
/// inner one is computed as it stands. The outer one may become one operation with a sum.
HExpr as_factor(const HExpr& product) {
  if (const auto* made = product.as<Halide::Internal::Mul>())
    return exact_product(made->a, made->b);
  if (const auto* made = product.as<Halide::Internal::Div>())
    if (const auto divisor = Halide::Internal::as_const_float(made->b))
      return exact_product(made->a, Halide::Internal::make_const(made->a.type(), 1 / *divisor));
  return product;
}

HExpr as_it_stands(tp::TermOp op, const HExpr& a, const HExpr& b) {
  return op == tp::TermOp::kAdd        ? exact_sum(a, b)
         : op == tp::TermOp::kSubtract ? exact_difference(a, b)
         : op == tp::TermOp::kMultiply ? exact_product(a, b)
                                       : nearest_quotient(a, b);
}

/// Whether the integer may be any of its type: it is read, or computed of such. Positions are not,
/// nor what other types become.
bool may_overflow(const tp::Term& term) {
  if (term->op == tp::TermOp::kLoad) return true;
  return term->op != tp::TermOp::kCast &&
         std::any_of(term->args.begin(), term->args.end(), may_overflow);
}

/// Of real numbers, as the operators of these names compare them; undefined for others.
HExpr compared(tp::TermOp op, const HExpr& a, const HExpr& b) {
  switch (op) {
    case tp::TermOp::kEqual:
      return equal_numbers(a, b);
    case tp::TermOp::kNotEqual:
      return !equal_numbers(a, b);
    case tp::TermOp::kLess:
      return less(a, b);
    case tp::TermOp::kLessEqual:
      return less_or_equal(a, b);
    case tp::TermOp::kGreater:
      return less(b, a);
    case tp::TermOp::kGreaterEqual:
      return less_or_equal(b, a);
    default:
      return {};
  }
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

HExpr wrapping_operation(const tp::TermNode& term, const std::vector<HExpr>& args) {
  const Halide::Type type = args[0].type(), wraps = type.with_code(halide_type_uint);
  if (!type.is_int() || type.bits() < 32 || args.size() > 2 ||
      !std::any_of(term.args.begin(), term.args.end(), may_overflow))
    return {};
  // A real number Halide would convert to an unsigned one at once, which negative ones have none
  // of; it does not where the sign's bit is changed between, and back.
  const auto unsigned_bits = [&](const HExpr& value) {
    const auto* cast = value.as<Halide::Internal::Cast>();
    if (cast == nullptr || !cast->value.type().is_float()) return Halide::cast(wraps, value);
    return Halide::cast(wraps, value ^ type.min()) + Halide::cast(wraps, type.min());
  };
  const HExpr a = unsigned_bits(args[0]), b = unsigned_bits(args.back());
  switch (term.op) {
    case tp::TermOp::kAdd:
      return Halide::cast(type, a + b);
    case tp::TermOp::kSubtract:
      return Halide::cast(type, a - b);
    case tp::TermOp::kMultiply:
      return Halide::cast(type, a * b);
    case tp::TermOp::kNegate:
      return Halide::cast(type, Halide::Internal::make_zero(wraps) - a);
    default:
      return {};
  }
}

HExpr operation(const tp::TermNode& term, const std::vector<HExpr>& args) {
  const HExpr& a = args[0];
  const HExpr& b = args.size() > 1 ? args[1] : a;
  if (a.type().is_float() && args.size() == 2) {
    if (const HExpr result = compared(term.op, a, b); result.defined()) return result;
    if (loses_ends(term)) return as_it_stands(term.op, a, b);
  }
  switch (term.op) {
    case tp::TermOp::kAdd:
      return a + b;
    case tp::TermOp::kSubtract:
      return a - b;
    case tp::TermOp::kMultiply:
      return a.type().is_float() ? as_factor(a) * as_factor(b) : a * b;
    case tp::TermOp::kDivide:
      return a.type().is_float() ? as_factor(a) / b : quotient(a, b);
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
    case tp::TermOp::kExpm1:
      return vector_expm1(a);
    case tp::TermOp::kLog:
      return vector_log(a);
    case tp::TermOp::kLog1p:
      return vector_log1p(a);
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
      return vector_power(a, b);
    case tp::TermOp::kIsNan:
      return is_not_a_number(a);
    case tp::TermOp::kQuotient:
      return nearest_quotient(a, b);
    case tp::TermOp::kBits:
      return Halide::reinterpret(Halide::Int(32), a);
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
