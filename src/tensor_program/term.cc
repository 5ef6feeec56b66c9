#include "tensor_program/term.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "runtime/casts.h"
#include "runtime/dispatch.h"
#include "tensor_program/range.h"

namespace collage::tensor_program {
namespace {

Term node(TermOp op, DType dtype, std::vector<Term> args) {
  auto made = std::make_shared<TermNode>();
  made->op = op;
  made->dtype = dtype;
  for (const Term& arg : args) made->depth = std::max(made->depth, arg->depth + 1);
  made->args = std::move(args);
  return Term(std::move(made));
}

/// What integers of the type hold, of uint64 as far as int64 goes; int32's for what is no integer.
Range limits(DType dtype) {
  if (dtype == DType::kUInt64) return {0, std::numeric_limits<int64_t>::max()};
  return range_of_type(is_float(dtype) ? DType::kInt32 : dtype).value();
}

bool is_constant(const Term& term) { return term->op == TermOp::kConstant; }

struct Operands {
  Term a, b;
};
/// Both of one type: that of the operand that is no constant.
Operands matched(const Term& a, const Term& b) {
  if (a.dtype() == b.dtype()) return {a, b};
  if (is_constant(b)) return {a, as_type(b, a.dtype())};
  if (is_constant(a)) return {as_type(a, b.dtype()), b};
  COLLAGE_CHECK(false, "operands of types {} and {}", dtype_name(a.dtype()), dtype_name(b.dtype()));
  return {};
}

Term boolean(bool value) { return integer_constant(value ? 1 : 0, DType::kBool); }

Term compare(TermOp op, const Term& x, const Term& y, bool (*holds)(int64_t, int64_t)) {
  const auto [a, b] = matched(x, y);
  const auto u = known_integer(a), v = known_integer(b);
  if (u && v) return boolean(holds(*u, *v));
  return node(op, DType::kBool, {a, b});
}

/// The result where it fits the type.
std::optional<int64_t> folded(TermOp op, int64_t u, int64_t v, DType dtype) {
  int64_t value = 0;
  bool overflow = false;
  switch (op) {
    case TermOp::kAdd:
      overflow = __builtin_add_overflow(u, v, &value);
      break;
    case TermOp::kSubtract:
      overflow = __builtin_sub_overflow(u, v, &value);
      break;
    case TermOp::kMultiply:
      overflow = __builtin_mul_overflow(u, v, &value);
      break;
    case TermOp::kDivide:
    case TermOp::kModulo:
      if (v == 0) break;
      if (v == -1) {
        overflow = op == TermOp::kDivide && __builtin_sub_overflow(int64_t{0}, u, &value);
      } else {
        value = op == TermOp::kDivide ? floor_div(u, v) : floor_mod(u, v);
      }
      break;
    case TermOp::kMin:
      value = std::min(u, v);
      break;
    case TermOp::kMax:
      value = std::max(u, v);
      break;
    default:
      return std::nullopt;
  }
  const auto [low, high] = limits(dtype);
  if (overflow || value < low || value > high) return std::nullopt;
  return value;
}

Term arithmetic(TermOp op, const Term& x, const Term& y) {
  const auto [a, b] = matched(x, y);
  const auto u = known_integer(a), v = known_integer(b);
  if (u && v && a.dtype() != DType::kBool)
    if (const auto value = folded(op, *u, *v, a.dtype()))
      return integer_constant(*value, a.dtype());
  if (v == 0 && (op == TermOp::kAdd || op == TermOp::kSubtract)) return a;
  if (u == 0 && op == TermOp::kAdd) return b;
  if (v == 1 && (op == TermOp::kMultiply || op == TermOp::kDivide)) return a;
  if (u == 1 && op == TermOp::kMultiply) return b;
  if (v == 1 && op == TermOp::kModulo) return integer_constant(0, a.dtype());
  return node(op, a.dtype(), {a, b});
}

}  // namespace

Term::Term(int value) : Term(integer_constant(value, DType::kInt32)) {}
Term::Term(float value) : Term(constant(static_cast<double>(value), DType::kFloat32)) {}
DType Term::dtype() const { return node_->dtype; }

Term constant(double value, DType dtype) {
  if (!is_float(dtype)) return integer_constant(integer_of(value, dtype), dtype);
  auto made = std::make_shared<TermNode>();
  made->dtype = dtype;
  made->real = dtype == DType::kFloat32 ? static_cast<double>(static_cast<float>(value)) : value;
  return Term(std::move(made));
}

Term integer_constant(int64_t value, DType dtype) {
  auto made = std::make_shared<TermNode>();
  made->dtype = dtype;
  made->integer = value;
  return Term(std::move(made));
}

Term as_type(const Term& term, DType dtype) {
  if (term.dtype() == dtype) return term;
  if (is_float(term.dtype())) return constant(term->real, dtype);
  return is_float(dtype) ? constant(static_cast<double>(term->integer), dtype)
                         : integer_constant(term->integer, dtype);
}

Term zero(DType dtype) { return constant(0, dtype); }

Term lowest(DType dtype) {
  if (is_float(dtype)) return constant(-std::numeric_limits<double>::infinity(), dtype);
  return integer_constant(limits(dtype).low, dtype);
}

Term highest(DType dtype) {
  if (is_float(dtype)) return constant(std::numeric_limits<double>::infinity(), dtype);
  return integer_constant(limits(dtype).high, dtype);
}

int64_t integer_of(double value, DType dtype) {
  if (dtype == DType::kBool) return value != 0 ? 1 : 0;
  int64_t integer = 0;
  dispatch_integer(
      dtype, [&]<typename T>(Tag<T>) { integer = static_cast<int64_t>(integer_from<T>(value)); });
  return integer;
}

Term var(std::string name, DType dtype) {
  auto made = std::make_shared<TermNode>();
  made->op = TermOp::kVar;
  made->dtype = dtype;
  made->name = std::move(name);
  return Term(std::move(made));
}

Term load(std::string name, DType dtype, std::vector<Term> at) {
  auto made = std::make_shared<TermNode>();
  made->op = TermOp::kLoad;
  made->dtype = dtype;
  made->name = std::move(name);
  for (const Term& index : at) made->depth = std::max(made->depth, index->depth + 1);
  made->args = std::move(at);
  return Term(std::move(made));
}

Term operator+(const Term& a, const Term& b) { return arithmetic(TermOp::kAdd, a, b); }
Term operator-(const Term& a, const Term& b) { return arithmetic(TermOp::kSubtract, a, b); }
Term operator*(const Term& a, const Term& b) { return arithmetic(TermOp::kMultiply, a, b); }
Term operator/(const Term& a, const Term& b) { return arithmetic(TermOp::kDivide, a, b); }
Term operator%(const Term& a, const Term& b) { return arithmetic(TermOp::kModulo, a, b); }
Term min(const Term& a, const Term& b) { return arithmetic(TermOp::kMin, a, b); }
Term max(const Term& a, const Term& b) { return arithmetic(TermOp::kMax, a, b); }
Term operator-(const Term& a) {
  if (const auto value = known_integer(a); value && a.dtype() != DType::kBool)
    if (const auto negated = folded(TermOp::kSubtract, 0, *value, a.dtype()))
      return integer_constant(*negated, a.dtype());
  return node(TermOp::kNegate, a.dtype(), {a});
}

Term operator==(const Term& a, const Term& b) {
  return compare(TermOp::kEqual, a, b, [](int64_t u, int64_t v) { return u == v; });
}
Term operator!=(const Term& a, const Term& b) {
  return compare(TermOp::kNotEqual, a, b, [](int64_t u, int64_t v) { return u != v; });
}
Term operator<(const Term& a, const Term& b) {
  return compare(TermOp::kLess, a, b, [](int64_t u, int64_t v) { return u < v; });
}
Term operator<=(const Term& a, const Term& b) {
  return compare(TermOp::kLessEqual, a, b, [](int64_t u, int64_t v) { return u <= v; });
}
Term operator>(const Term& a, const Term& b) {
  return compare(TermOp::kGreater, a, b, [](int64_t u, int64_t v) { return u > v; });
}
Term operator>=(const Term& a, const Term& b) {
  return compare(TermOp::kGreaterEqual, a, b, [](int64_t u, int64_t v) { return u >= v; });
}

Term operator&&(const Term& a, const Term& b) {
  if (const auto u = known_integer(a)) return *u != 0 ? b : a;
  if (const auto v = known_integer(b)) return *v != 0 ? a : b;
  return node(TermOp::kAnd, DType::kBool, {a, b});
}
Term operator||(const Term& a, const Term& b) {
  if (const auto u = known_integer(a)) return *u != 0 ? a : b;
  if (const auto v = known_integer(b)) return *v != 0 ? b : a;
  return node(TermOp::kOr, DType::kBool, {a, b});
}
Term operator!(const Term& a) {
  if (const auto value = known_integer(a)) return boolean(*value == 0);
  return node(TermOp::kNot, DType::kBool, {a});
}

Term clamp(const Term& value, const Term& low, const Term& high) {
  return max(min(value, high), low);
}

Term select(const Term& condition, const Term& yes, const Term& no) {
  const auto [a, b] = matched(yes, no);
  if (const auto value = known_integer(condition)) return *value != 0 ? a : b;
  return node(TermOp::kSelect, a.dtype(), {condition, a, b});
}

Term cast(DType to, const Term& value) {
  if (value.dtype() == to) return value;
  return node(TermOp::kCast, to, {value});
}
Term likely(const Term& value) {
  return is_constant(value) ? value : node(TermOp::kLikely, value.dtype(), {value});
}
Term power(const Term& base, const Term& exponent) {
  const auto [a, b] = matched(base, exponent);
  return node(TermOp::kPower, a.dtype(), {a, b});
}
Term is_nan(const Term& value) { return node(TermOp::kIsNan, DType::kBool, {value}); }
Term bits(const Term& value) { return node(TermOp::kBits, DType::kInt32, {value}); }
Term quotient(const Term& a, const Term& b) {
  const auto [x, y] = matched(a, b);
  return node(TermOp::kQuotient, x.dtype(), {x, y});
}
Term function(TermOp op, const Term& x) { return node(op, x.dtype(), {x}); }

Term make_term(TermOp op, std::vector<Term> args, DType dtype) {
  switch (op) {
    case TermOp::kAdd:
    case TermOp::kSubtract:
    case TermOp::kMultiply:
    case TermOp::kDivide:
    case TermOp::kModulo:
    case TermOp::kMin:
    case TermOp::kMax:
      return arithmetic(op, args[0], args[1]);
    case TermOp::kEqual:
      return args[0] == args[1];
    case TermOp::kNotEqual:
      return args[0] != args[1];
    case TermOp::kLess:
      return args[0] < args[1];
    case TermOp::kLessEqual:
      return args[0] <= args[1];
    case TermOp::kGreater:
      return args[0] > args[1];
    case TermOp::kGreaterEqual:
      return args[0] >= args[1];
    case TermOp::kAnd:
      return args[0] && args[1];
    case TermOp::kOr:
      return args[0] || args[1];
    case TermOp::kNot:
      return !args[0];
    case TermOp::kNegate:
      return -args[0];
    case TermOp::kSelect:
      return select(args[0], args[1], args[2]);
    case TermOp::kCast:
      return cast(dtype, args[0]);
    case TermOp::kLikely:
      return likely(args[0]);
    case TermOp::kPower:
      return power(args[0], args[1]);
    case TermOp::kIsNan:
      return is_nan(args[0]);
    case TermOp::kQuotient:
      return quotient(args[0], args[1]);
    case TermOp::kBits:
      return bits(args[0]);
    default:
      return function(op, args[0]);
  }
}

bool same(const Term& a, const Term& b) {
  if (a.get() == b.get()) return true;
  if (!a.defined() || !b.defined()) return false;
  const bool equal_reals = a->real == b->real || (a->real != a->real && b->real != b->real);
  if (a->op != b->op || a->dtype != b->dtype || a->integer != b->integer || !equal_reals ||
      a->name != b->name || a->args.size() != b->args.size())
    return false;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!same(a->args[i], b->args[i])) return false;
  return true;
}

std::optional<int64_t> known_integer(const Term& term) {
  if (!is_constant(term) || is_float(term.dtype())) return std::nullopt;
  return term->integer;
}

bool is_integer_constant(const Term& term, int64_t value) {
  return term.defined() && known_integer(term) == value;
}

const std::vector<TermSpelling>& term_spellings() {
  static const std::vector<TermSpelling> table = {
      {TermOp::kOr, "||", 1, 2},         {TermOp::kAnd, "&&", 2, 2},
      {TermOp::kEqual, "==", 3, 2},      {TermOp::kNotEqual, "!=", 3, 2},
      {TermOp::kLessEqual, "<=", 4, 2},  {TermOp::kGreaterEqual, ">=", 4, 2},
      {TermOp::kLess, "<", 4, 2},        {TermOp::kGreater, ">", 4, 2},
      {TermOp::kAdd, "+", 5, 2},         {TermOp::kSubtract, "-", 5, 2},
      {TermOp::kMultiply, "*", 6, 2},    {TermOp::kDivide, "/", 6, 2},
      {TermOp::kModulo, "%", 6, 2},      {TermOp::kNot, "!", 7, 1},
      {TermOp::kNegate, "-", 7, 1},      {TermOp::kMin, "min", 0, 2},
      {TermOp::kMax, "max", 0, 2},       {TermOp::kSelect, "select", 0, 3},
      {TermOp::kLikely, "likely", 0, 1}, {TermOp::kExp, "exp", 0, 1},
      {TermOp::kLog, "log", 0, 1},       {TermOp::kSqrt, "sqrt", 0, 1},
      {TermOp::kErf, "erf", 0, 1},       {TermOp::kAbs, "abs", 0, 1},
      {TermOp::kCeil, "ceil", 0, 1},     {TermOp::kFloor, "floor", 0, 1},
      {TermOp::kRound, "round", 0, 1},   {TermOp::kTrunc, "trunc", 0, 1},
      {TermOp::kSin, "sin", 0, 1},       {TermOp::kCos, "cos", 0, 1},
      {TermOp::kTanh, "tanh", 0, 1},     {TermOp::kPower, "power", 0, 2},
      {TermOp::kIsNan, "is_nan", 0, 1},  {TermOp::kQuotient, "quotient", 0, 2},
      {TermOp::kExpm1, "expm1", 0, 1},   {TermOp::kLog1p, "log1p", 0, 1},
      {TermOp::kBits, "bits", 0, 1},
  };
  return table;
}

}  // namespace collage::tensor_program
