#include "backend/native/halide_math.h"

#include <vector>

namespace collage::native {

using Halide::Expr;
using Halide::Internal::Call;

namespace {

/// An operation of which LLVM assumes nothing about the numbers.
Expr strict(Call::IntrinsicOp operation, const Expr& a, const Expr& b) {
  const bool compares = operation == Call::strict_eq;
  const Halide::Type type = compares ? a.type().with_code(halide_type_uint).with_bits(1) : a.type();
  return Call::make(type, operation, {a, b}, Call::PureIntrinsic);
}

/// Numbers around it are whole: added to one that is small, it leaves the nearest integer, in the
/// low bits.
constexpr float kWhole = 0x1.8p23f;

/// A function that goes from -1 at -end to 1 at `end`: x * p(x^2) / q(x^2), of the polynomials with
/// the least relative error. What rounding adds to 1 is cut off.
Expr odd_quotient(const Expr& x, float end, const std::vector<float>& p,
                  const std::vector<float>& q) {
  const Expr within = number_or_smaller(end, number_or_larger(-end, x));
  const Expr square = within * within;
  const auto polynomial = [&](const std::vector<float>& highest_first) {
    Expr sum = highest_first[0];
    for (size_t i = 1; i < highest_first.size(); ++i) sum = sum * square + highest_first[i];
    return sum;
  };
  return number_or_smaller(1.0f, number_or_larger(-1.0f, within * polynomial(p) / polynomial(q)));
}

}  // namespace

Expr number_or_larger(const Expr& low, const Expr& x) {
  return strict(Call::strict_max, Halide::cast(x.type(), low), x);
}
Expr number_or_smaller(const Expr& high, const Expr& x) {
  return strict(Call::strict_min, Halide::cast(x.type(), high), x);
}

Expr vector_exp(const Expr& x) {
  // e^x = 2^n * e^r with |r| <= ln(2) / 2; e^r by its Taylor series of degree 7 (5e-9). At the ends
  // n is -127 and 128, of which the bits are those of 0 and infinity.
  const Expr clamped = number_or_smaller(88.7f, number_or_larger(-88.0f, x));
  const Expr doublings = clamped * 1.44269504f, n = nearest_small(doublings);
  const Expr r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  Expr p = 1.0f / 5040;
  for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
  return p * Halide::reinterpret<float>((nearest_bits(doublings) + 127) << 23);
}

Expr vector_log(const Expr& x) {
  // x = 2^e * m with m from sqrt(1/2) to sqrt(2); log(m) by the polynomial of Cephes (Moshier,
  // logf.c). Subnormal numbers are scaled first.
  constexpr int32_t kHalfRoot = 0x3f3504f3, kInfinity = 0x7f800000, kNaN = 0x7fc00000;
  const Expr given = Halide::reinterpret<int32_t>(x);
  const Expr subnormal = given < 0x800000;
  const Expr bits = Halide::select(subnormal, Halide::reinterpret<int32_t>(x * 0x1p23f), given);
  const Expr exponent = (bits - kHalfRoot) >> 23;
  const Expr e = Halide::cast<float>(exponent - Halide::select(subnormal, 23, 0));
  const Expr f = Halide::reinterpret<float>(bits - (exponent << 23)) - 1.0f;
  Expr p = 7.0376836292e-2f;
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                  -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f, -0.5f})
    p = p * f + c;
  const Expr log = (p * f * f + e * -2.12194440e-4f) + f + e * 0.693359375f;
  // Chosen as integers: of real numbers LLVM takes none for NaN.
  const Expr ordinary = given > 0 && given < kInfinity;
  const Expr special =
      Halide::select((given & 0x7fffffff) == 0, kMinusInfinityBits, given < 0, kNaN, given);
  return Halide::reinterpret<float>(
      Halide::select(ordinary, Halide::reinterpret<int32_t>(log), special));
}

Expr vector_tanh(const Expr& x) {
  return odd_quotient(x, 9.0f,
                      {1.33546471e-8f, 2.0609071e-5f, 3.4955874e-3f, 0.13381025f, 0.999999979f},
                      {7.77655213e-7f, 3.28563366e-4f, 2.58769794e-2f, 0.467143406f, 1.0f});
}

Expr vector_erf(const Expr& x) {
  return odd_quotient(
      x, 3.92f,
      {2.05010119e-6f, 2.84882797e-4f, 3.76558972e-3f, 5.27486389e-2f, 0.190405736f, 1.12837915f},
      {3.80918646e-5f, 1.16253025e-3f, 1.49691606e-2f, 0.114108821f, 0.502075431f, 1.0f});
}

Expr nearest_small(const Expr& x) { return exact_sum(exact_sum(x, kWhole), -kWhole); }

Expr nearest_bits(const Expr& x) { return Halide::reinterpret<uint32_t>(exact_sum(x, kWhole)); }

Expr is_not_a_number(const Expr& x) { return !strict(Call::strict_eq, x, x); }

Expr exact_sum(const Expr& a, const Expr& b) { return strict(Call::strict_add, a, b); }

Expr nearest_quotient(const Expr& a, const Expr& b) { return strict(Call::strict_div, a, b); }

}  // namespace collage::native
