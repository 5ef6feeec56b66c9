#include "backend/native/halide_math.h"

namespace collage::native {

using Halide::Expr;

Expr number_or_larger(const Expr& low, const Expr& x) {
  using Halide::Internal::Call;
  return Call::make(x.type(), Call::strict_max, {Halide::cast(x.type(), low), x},
                    Call::PureIntrinsic);
}
Expr number_or_smaller(const Expr& high, const Expr& x) {
  using Halide::Internal::Call;
  return Call::make(x.type(), Call::strict_min, {Halide::cast(x.type(), high), x},
                    Call::PureIntrinsic);
}

Expr vector_exp(const Expr& x) {
  // e^x = 2^n * e^r with |r| <= ln(2) / 2; e^r by its Taylor series of degree 7 (5e-9). At the ends
  // n is -127 and 128, of which the bits are those of 0 and infinity.
  const Expr clamped = number_or_smaller(88.7f, number_or_larger(-88.0f, x));
  const Expr n = Halide::round(clamped * 1.44269504f);
  const Expr r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  Expr p = 1.0f / 5040;
  for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
  return p * Halide::reinterpret<float>((Halide::cast<int32_t>(n) + 127) << 23);
}

Expr vector_tanh(const Expr& x) {
  // (1 - t) / (1 + t) with t = exp(-2|x|); a series where that cancels.
  const Expr size = Halide::abs(x);
  const Expr t = vector_exp(-2.0f * size);
  const Expr far = (1.0f - t) / (1.0f + t);
  const Expr s = x * x;
  const Expr near =
      x * (1.0f + s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835)))));
  return Halide::select(size < 0.25f, near, x < 0.0f, -far, far);
}

Expr is_not_a_number(const Expr& x) {
  using Halide::Internal::Call;
  return !Call::make(x.type().with_code(halide_type_uint).with_bits(1), Call::strict_eq, {x, x},
                     Call::PureIntrinsic);
}

Expr nearest_quotient(const Expr& a, const Expr& b) {
  using Halide::Internal::Call;
  return Call::make(a.type(), Call::strict_div, {a, b}, Call::PureIntrinsic);
}

}  // namespace collage::native
