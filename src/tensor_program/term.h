// Term: an expression of a tensor program, over index variables, elements of buffers and stages,
// and constants. Terms are immutable and shared: one that occurs twice is computed once.
//
// Index variables are int32. Operands have equal types; a constant takes the other operand's.
// Integer division rounds down, and a remainder has the sign of its divisor, so that indices of
// blocks need no case distinctions; by zero both are zero. Integers wrap around. Integer arithmetic
// on constants, and on neutral ones, is done when the term is made and its result fits the type.
#pragma once

#include <collage/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collage::tensor_program {

enum class TermOp {
  kConstant,
  kVar,   ///< an index variable
  kLoad,  ///< an element of the buffer or stage `name`, at the arguments
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kMin,
  kMax,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kNot,
  kNegate,
  kSelect,  ///< condition, value where it holds, value where not; both may be computed
  kCast,
  kLikely,  ///< its argument; a hint that a condition mostly holds, or a value mostly matters
  kExp,
  kExpm1,  ///< e^x - 1, exact where x is small
  kLog,
  kLog1p,  ///< log(1 + x), exact where x is small
  kSqrt,
  kErf,
  kAbs,
  kCeil,
  kFloor,
  kRound,  ///< halves to even
  kTrunc,
  kSin,
  kCos,
  kTanh,
  kPower,
  kIsNan,
  kQuotient,  ///< a division that rounds to nearest; compiled code may take kDivide's for a
              ///< multiplication by the reciprocal
  kBits,      ///< a float32's bits, as an int32
};

struct TermNode;

class Term {
 public:
  Term() = default;   ///< undefined
  Term(int value);    // NOLINT: implicit on purpose, as are reals
  Term(float value);  // NOLINT
  explicit Term(std::shared_ptr<const TermNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const TermNode* get() const { return node_.get(); }
  const TermNode* operator->() const { return node_.get(); }
  DType dtype() const;

 private:
  std::shared_ptr<const TermNode> node_;
};

struct TermNode {
  TermOp op = TermOp::kConstant;
  DType dtype = DType::kInt32;
  double real = 0;      ///< of a constant of a real type
  int64_t integer = 0;  ///< of any other constant; a bool is 0 or 1
  std::string name;     ///< of a variable, or of what a load reads
  std::vector<Term> args;
  int depth = 0;  ///< of the nesting of arguments
};

Term constant(double value, DType dtype);
Term integer_constant(int64_t value, DType dtype);
Term as_type(const Term& constant, DType dtype);  ///< the constant with that type
Term zero(DType dtype);
Term lowest(DType dtype);  ///< minus infinity, or the least integer
Term highest(DType dtype);
/// Converts a real to an integer of the type (runtime/casts.h).
int64_t integer_of(double value, DType dtype);
/// Makes an index variable; of another type only if a program is made for a given value (an
/// anchor's accumulator).
Term var(std::string name, DType dtype = DType::kInt32);
Term load(std::string name, DType dtype, std::vector<Term> at);

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator%(const Term& a, const Term& b);
Term operator-(const Term& a);
Term operator==(const Term& a, const Term& b);  ///< a term; `same` compares terms
Term operator!=(const Term& a, const Term& b);
Term operator<(const Term& a, const Term& b);
Term operator<=(const Term& a, const Term& b);
Term operator>(const Term& a, const Term& b);
Term operator>=(const Term& a, const Term& b);
Term operator&&(const Term& a, const Term& b);
Term operator||(const Term& a, const Term& b);
Term operator!(const Term& a);
Term min(const Term& a, const Term& b);
Term max(const Term& a, const Term& b);
Term clamp(const Term& value, const Term& low, const Term& high);
Term select(const Term& condition, const Term& yes, const Term& no);
Term cast(DType to, const Term& value);
Term likely(const Term& value);
Term power(const Term& base, const Term& exponent);
Term is_nan(const Term& value);
Term quotient(const Term& a, const Term& b);  ///< of reals
Term bits(const Term& value);                 ///< of a float32
/// Applies a function of one argument: kExp … kTanh.
Term function(TermOp op, const Term& x);
inline Term exp(const Term& x) { return function(TermOp::kExp, x); }
inline Term expm1(const Term& x) { return function(TermOp::kExpm1, x); }
inline Term log(const Term& x) { return function(TermOp::kLog, x); }
inline Term log1p(const Term& x) { return function(TermOp::kLog1p, x); }
inline Term sqrt(const Term& x) { return function(TermOp::kSqrt, x); }
inline Term erf(const Term& x) { return function(TermOp::kErf, x); }
inline Term abs(const Term& x) { return function(TermOp::kAbs, x); }
inline Term ceil(const Term& x) { return function(TermOp::kCeil, x); }
inline Term floor(const Term& x) { return function(TermOp::kFloor, x); }
inline Term round(const Term& x) { return function(TermOp::kRound, x); }
inline Term trunc(const Term& x) { return function(TermOp::kTrunc, x); }
inline Term sin(const Term& x) { return function(TermOp::kSin, x); }
inline Term cos(const Term& x) { return function(TermOp::kCos, x); }
inline Term tanh(const Term& x) { return function(TermOp::kTanh, x); }

/// Makes any operation but kConstant, kVar and kLoad; `dtype` is for kCast.
Term make_term(TermOp op, std::vector<Term> args, DType dtype = DType::kFloat32);

bool same(const Term& a, const Term& b);  ///< structurally; both may be undefined
/// Returns the quotient rounded down; the divisor is not zero, nor -1 for the least value.
constexpr int64_t floor_div(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return value % divisor != 0 && (value < 0) != (divisor < 0) ? quotient - 1 : quotient;
}

/// Returns the matching remainder, with the divisor's sign.
constexpr int64_t floor_mod(int64_t value, int64_t divisor) {
  const int64_t remainder = value % divisor;
  return remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder;
}

/// Returns the value of a constant that is no real number.
std::optional<int64_t> known_integer(const Term& term);
bool is_integer_constant(const Term& term, int64_t value);

/// Spelling of operations in text. Precedence 0: written as a function.
struct TermSpelling {
  TermOp op;
  std::string_view text;
  int precedence;
  size_t arity;
};
const std::vector<TermSpelling>& term_spellings();

}  // namespace collage::tensor_program
