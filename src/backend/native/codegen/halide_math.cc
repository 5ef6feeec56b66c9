#include "backend/native/codegen/halide_math.h"

#include <vector>

namespace collage::native {

using Halide::Internal::Call;

namespace {

/// An operation of which LLVM assumes nothing about the numbers.
HExpr strict(Call::IntrinsicOp operation, const HExpr& a, const HExpr& b) {
  const bool compares = operation == Call::strict_eq || operation == Call::strict_lt;
  const Halide::Type type = compares ? a.type().with_code(halide_type_uint).with_bits(1) : a.type();
  return Call::make(type, operation, {a, b}, Call::PureIntrinsic);
}

/// Numbers around it are whole: added to one that is small, it leaves the nearest integer, in the
/// low bits.
constexpr float kWhole = 0x1.8p23f;

/// A function that goes from -1 at -end to 1 at `end`: x * p(x^2) / q(x^2), of the polynomials with
/// the least relative error. What rounding adds to 1 is cut off.
HExpr odd_quotient(const HExpr& x, float end, const std::vector<float>& p,
                   const std::vector<float>& q) {
  const HExpr within = number_or_smaller(end, number_or_larger(-end, x));
  const HExpr square = within * within;
  const auto polynomial = [&](const std::vector<float>& highest_first) {
    HExpr sum = highest_first[0];
    for (size_t i = 1; i < highest_first.size(); ++i) sum = sum * square + highest_first[i];
    return sum;
  };
  return number_or_smaller(1.0f, number_or_larger(-1.0f, within * polynomial(p) / polynomial(q)));
}

constexpr int32_t kOneBits = 0x3f800000, kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000,
                  kHalfRootBits = 0x3f3504f3, kMagnitude = 0x7fffffff, kSignBit = -kMagnitude - 1;
HExpr bits_of(const HExpr& x) { return Halide::reinterpret<int32_t>(x); }

/// e^x = scale * (1 + r * rest), of which scale is 2^n and finite.
struct PowerOfE {
  HExpr scale, r, rest;
};
PowerOfE power_of_e(const HExpr& x) {
  // r is from -ln(2) / 2 to ln(2) / 2; where n would be 128, beyond float32, it is 127, and r is
  // as large as what it takes to make the product infinite. The polynomial is the one with the
  // least relative error up to ln(2): 1.5e-9. At the other end n is -127, of which the bits are
  // those of 0.
  const HExpr from_low = number_or_larger(-88.0f, x);
  const HExpr doublings = number_or_smaller(127.0f, from_low * 1.44269504f);
  const HExpr n = nearest_small(doublings);
  const HExpr r = (from_low - n * 0.693145752f) - n * 1.42860677e-6f;
  HExpr rest = 2.32533354e-4f;
  for (float c :
       {1.38385678e-3f, 8.32678564e-3f, 4.16680723e-2f, 1.66666999e-1f, 0.499999940f, 1.0f})
    rest = rest * r + c;
  return {Halide::reinterpret<float>((nearest_bits(doublings) + 127) << 23), r, rest};
}

/// log(2^e * (1 + f)), by the polynomial of Cephes (Moshier, logf.c), or what the logarithm of
/// zero, of less, of infinity or NaN is, where the bits that were given are of such.
HExpr log_or_special(const HExpr& given, const HExpr& e, const HExpr& f) {
  HExpr p = 7.0376836292e-2f;
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                  -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f, -0.5f})
    p = p * f + c;
  const HExpr log = (p * f * f + e * -2.12194440e-4f) + f + e * 0.693359375f;
  // Chosen as integers: of real numbers LLVM takes none for NaN.
  const HExpr ordinary = given > 0 && given < kInfinityBits;
  const HExpr special =
      Halide::select((given & kMagnitude) == 0, kMinusInfinityBits, given < 0, kNanBits, given);
  return Halide::reinterpret<float>(Halide::select(ordinary, bits_of(log), special));
}

}  // namespace

HExpr number_or_larger(const HExpr& low, const HExpr& x) {
  return strict(Call::strict_max, Halide::cast(x.type(), low), x);
}
HExpr number_or_smaller(const HExpr& high, const HExpr& x) {
  return strict(Call::strict_min, Halide::cast(x.type(), high), x);
}

HExpr vector_exp(const HExpr& x) {
  // The last product stands alone: of (q + 1) * s, and of s times what follows, LLVM makes
  // q * s + s, and infinities then meet their opposites.
  const PowerOfE power = power_of_e(x);
  return exact_product(power.rest * power.r + 1.0f, power.scale);
}

HExpr vector_expm1(const HExpr& x) {
  const PowerOfE power = power_of_e(x);
  return exact_sum(exact_product(power.rest * power.r, power.scale), exact_sum(power.scale, -1.0f));
}

HExpr vector_log(const HExpr& x) {
  // x = 2^e * m with m from sqrt(1/2) to sqrt(2). Subnormal numbers are scaled first.
  const HExpr given = bits_of(x);
  const HExpr subnormal = given < 0x800000;
  const HExpr bits = Halide::select(subnormal, bits_of(x * 0x1p23f), given);
  const HExpr exponent = (bits - kHalfRootBits) >> 23;
  const HExpr e = Halide::cast<float>(exponent - Halide::select(subnormal, 23, 0));
  const HExpr f = Halide::reinterpret<float>(bits - (exponent << 23)) - 1.0f;
  return log_or_special(given, e, f);
}

HExpr vector_log1p(const HExpr& x) {
  // As the logarithm of w = 1 + x, where what w lost of x is added to the mantissa.
  const HExpr w = exact_sum(x, 1.0f), given = bits_of(w);
  const HExpr exponent = (given - kHalfRootBits) >> 23;
  const HExpr mantissa = Halide::reinterpret<float>(given - (exponent << 23));
  const HExpr lost =
      exact_product(exact_difference(x, exact_sum(w, -1.0f)),
                    Halide::reinterpret<float>((127 - Halide::min(exponent, 126)) << 23));
  const HExpr f = exact_sum(exact_sum(mantissa, -1.0f), lost);
  return log_or_special(given, Halide::cast<float>(exponent), f);
}

HExpr vector_power(const HExpr& x, const HExpr& y) {
  const HExpr given = bits_of(x), size = given & kMagnitude, exponent = bits_of(y) & kMagnitude;
  const HExpr log = vector_log(Halide::reinterpret<float>(size));
  const HExpr power = bits_of(vector_exp(exact_product(log, y)));
  // Of a negative number: of which sign, or NaN.
  const HExpr half = exact_product(y, 0.5f);
  const HExpr whole = equal_numbers(Halide::floor(y), y);
  const HExpr odd = whole && !equal_numbers(Halide::floor(half), half);
  const HExpr below = given < 0 && size != 0 && size < kInfinityBits && !whole;
  const HExpr with_sign = power ^ Halide::select(given < 0 && odd, kSignBit, 0);
  // Whatever the other one is.
  const HExpr one =
      exponent == 0 || given == kOneBits || (size == kOneBits && exponent == kInfinityBits);
  return Halide::reinterpret<float>(Halide::select(one, kOneBits, below, kNanBits, with_sign));
}

HExpr vector_tanh(const HExpr& x) {
  return odd_quotient(x, 9.0f,
                      {1.33546471e-8f, 2.0609071e-5f, 3.4955874e-3f, 0.13381025f, 0.999999979f},
                      {7.77655213e-7f, 3.28563366e-4f, 2.58769794e-2f, 0.467143406f, 1.0f});
}

HExpr vector_erf(const HExpr& x) {
  return odd_quotient(
      x, 3.92f,
      {2.05010119e-6f, 2.84882797e-4f, 3.76558972e-3f, 5.27486389e-2f, 0.190405736f, 1.12837915f},
      {3.80918646e-5f, 1.16253025e-3f, 1.49691606e-2f, 0.114108821f, 0.502075431f, 1.0f});
}

HExpr nearest_small(const HExpr& x) { return exact_sum(exact_sum(x, kWhole), -kWhole); }

HExpr nearest_bits(const HExpr& x) { return Halide::reinterpret<uint32_t>(exact_sum(x, kWhole)); }

HExpr equal_numbers(const HExpr& a, const HExpr& b) { return strict(Call::strict_eq, a, b); }
HExpr less(const HExpr& a, const HExpr& b) { return strict(Call::strict_lt, a, b); }
HExpr less_or_equal(const HExpr& a, const HExpr& b) {
  // Not by strict_le, for which Halide asks whether b is not less.
  return less(a, b) || equal_numbers(a, b);
}
HExpr is_not_a_number(const HExpr& x) { return !equal_numbers(x, x); }

HExpr exact_sum(const HExpr& a, const HExpr& b) { return strict(Call::strict_add, a, b); }
HExpr exact_difference(const HExpr& a, const HExpr& b) { return strict(Call::strict_sub, a, b); }
HExpr exact_product(const HExpr& a, const HExpr& b) { return strict(Call::strict_mul, a, b); }

HExpr nearest_quotient(const HExpr& a, const HExpr& b) { return strict(Call::strict_div, a, b); }

}  // namespace collage::native
