#include "backend/native/halide_math.h"

#include <cmath>
#include <limits>

namespace collage::native {

using Halide::Expr;

Expr vector_exp(Expr x) {
  // e^x = 2^n * e^r with |r| <= ln(2) / 2; e^r by its Taylor series of degree 7 (5e-9).
  const Expr clamped = Halide::clamp(x, -87.3f, 88.7f);
  const Expr n = Halide::round(clamped * 1.44269504f);
  const Expr r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  Expr p = 1.0f / 5040;
  for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
  const Expr scale = Halide::reinterpret<float>((Halide::cast<int32_t>(n) + 127) << 23);
  return Halide::select(x<-87.3f, 0.0f, x> 88.7f, std::numeric_limits<float>::infinity(),
                        p * scale);
}

Expr vector_tanh(const Expr& x) {
  // (1 - t) / (1 + t) with t = exp(-2|x|); a series where that cancels.
  const Expr size = Halide::abs(x);
  const Expr t = vector_exp(-2.0f * Halide::min(size, 20.0f));
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
