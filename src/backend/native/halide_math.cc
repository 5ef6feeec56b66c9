#include "backend/native/halide_math.h"

#include <vector>

namespace collage::native {

using Halide::Expr;
using Halide::Internal::Call;

namespace {

/// An operation of which LLVM assumes nothing about the numbers.
Expr strict(Call::IntrinsicOp operation, const Expr& a, const Expr& b) {
  const bool compares = operation == Call::strict_eq || operation == Call::strict_lt;
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

constexpr int32_t kOneBits = 0x3f800000, kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000,
                  kHalfRootBits = 0x3f3504f3, kMagnitude = 0x7fffffff, kSignBit = -kMagnitude - 1;
Expr bits_of(const Expr& x) { return Halide::reinterpret<int32_t>(x); }

/// e^x = scale * (1 + r * rest), of which scale is 2^n and finite.
struct PowerOfE {
  Expr scale, r, rest;
};
PowerOfE power_of_e(const Expr& x) {
  // r is from -ln(2) / 2 to ln(2) / 2; where n would be 128, beyond float32, it is 127, and r is
  // as large as what it takes to make the product infinite. The polynomial is the one with the
  // least relative error up to ln(2): 1.5e-9. At the other end n is -127, of which the bits are
  // those of 0.
  const Expr from_low = number_or_larger(-88.0f, x);
  const Expr doublings = number_or_smaller(127.0f, from_low * 1.44269504f);
  const Expr n = nearest_small(doublings);
  const Expr r = (from_low - n * 0.693145752f) - n * 1.42860677e-6f;
  Expr rest = 2.32533354e-4f;
  for (float c :
       {1.38385678e-3f, 8.32678564e-3f, 4.16680723e-2f, 1.66666999e-1f, 0.499999940f, 1.0f})
    rest = rest * r + c;
  return {Halide::reinterpret<float>((nearest_bits(doublings) + 127) << 23), r, rest};
}

/// log(2^e * (1 + f)), by the polynomial of Cephes (Moshier, logf.c), or what the logarithm of
/// zero, of less, of infinity or NaN is, where the bits that were given are of such.
Expr log_or_special(const Expr& given, const Expr& e, const Expr& f) {
  Expr p = 7.0376836292e-2f;
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                  -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f, -0.5f})
    p = p * f + c;
  const Expr log = (p * f * f + e * -2.12194440e-4f) + f + e * 0.693359375f;
  // Chosen as integers: of real numbers LLVM takes none for NaN.
  const Expr ordinary = given > 0 && given < kInfinityBits;
  const Expr special =
      Halide::select((given & kMagnitude) == 0, kMinusInfinityBits, given < 0, kNanBits, given);
  return Halide::reinterpret<float>(Halide::select(ordinary, bits_of(log), special));
}

}  // namespace

Expr number_or_larger(const Expr& low, const Expr& x) {
  return strict(Call::strict_max, Halide::cast(x.type(), low), x);
}
Expr number_or_smaller(const Expr& high, const Expr& x) {
  return strict(Call::strict_min, Halide::cast(x.type(), high), x);
}

Expr vector_exp(const Expr& x) {
  // The last product stands alone: of (q + 1) * s, and of s times what follows, LLVM makes
  // q * s + s, and infinities then meet their opposites.
  const PowerOfE power = power_of_e(x);
  return exact_product(power.rest * power.r + 1.0f, power.scale);
}

Expr vector_expm1(const Expr& x) {
  const PowerOfE power = power_of_e(x);
  return exact_sum(exact_product(power.rest * power.r, power.scale), exact_sum(power.scale, -1.0f));
}

Expr vector_log(const Expr& x) {
  // x = 2^e * m with m from sqrt(1/2) to sqrt(2). Subnormal numbers are scaled first.
  const Expr given = bits_of(x);
  const Expr subnormal = given < 0x800000;
  const Expr bits = Halide::select(subnormal, bits_of(x * 0x1p23f), given);
  const Expr exponent = (bits - kHalfRootBits) >> 23;
  const Expr e = Halide::cast<float>(exponent - Halide::select(subnormal, 23, 0));
  const Expr f = Halide::reinterpret<float>(bits - (exponent << 23)) - 1.0f;
  return log_or_special(given, e, f);
}

Expr vector_log1p(const Expr& x) {
  // As the logarithm of w = 1 + x, where what w lost of x is added to the mantissa.
  const Expr w = exact_sum(x, 1.0f), given = bits_of(w);
  const Expr exponent = (given - kHalfRootBits) >> 23;
  const Expr mantissa = Halide::reinterpret<float>(given - (exponent << 23));
  const Expr lost =
      exact_product(exact_difference(x, exact_sum(w, -1.0f)),
                    Halide::reinterpret<float>((127 - Halide::min(exponent, 126)) << 23));
  const Expr f = exact_sum(exact_sum(mantissa, -1.0f), lost);
  return log_or_special(given, Halide::cast<float>(exponent), f);
}

Expr vector_power(const Expr& x, const Expr& y) {
  const Expr given = bits_of(x), size = given & kMagnitude, exponent = bits_of(y) & kMagnitude;
  const Expr log = vector_log(Halide::reinterpret<float>(size));
  const Expr power = bits_of(vector_exp(exact_product(log, y)));
  // Of a negative number: of which sign, or NaN.
  const Expr half = exact_product(y, 0.5f);
  const Expr whole = equal_numbers(Halide::floor(y), y);
  const Expr odd = whole && !equal_numbers(Halide::floor(half), half);
  const Expr below = given < 0 && size != 0 && size < kInfinityBits && !whole;
  const Expr with_sign = power ^ Halide::select(given < 0 && odd, kSignBit, 0);
  // Whatever the other one is.
  const Expr one =
      exponent == 0 || given == kOneBits || (size == kOneBits && exponent == kInfinityBits);
  return Halide::reinterpret<float>(Halide::select(one, kOneBits, below, kNanBits, with_sign));
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

Expr equal_numbers(const Expr& a, const Expr& b) { return strict(Call::strict_eq, a, b); }
Expr less(const Expr& a, const Expr& b) { return strict(Call::strict_lt, a, b); }
Expr less_or_equal(const Expr& a, const Expr& b) {
  // Not by strict_le, for which Halide asks whether b is not less.
  return less(a, b) || equal_numbers(a, b);
}
Expr is_not_a_number(const Expr& x) { return !equal_numbers(x, x); }

Expr exact_sum(const Expr& a, const Expr& b) { return strict(Call::strict_add, a, b); }
Expr exact_difference(const Expr& a, const Expr& b) { return strict(Call::strict_sub, a, b); }
Expr exact_product(const Expr& a, const Expr& b) { return strict(Call::strict_mul, a, b); }

Expr nearest_quotient(const Expr& a, const Expr& b) { return strict(Call::strict_div, a, b); }

}  // namespace collage::native
