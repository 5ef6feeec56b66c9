// Mathematical functions as vectorisable Halide expressions, within 1e-6 of the exact value
// relative to the largest output. Halide's own tanh calls scalar libm, hence these.
#pragma once

#include <Halide.h>

namespace collage::native {

Halide::Expr vector_exp(Halide::Expr x);  ///< 0 below -87.3, infinity above 88.7
Halide::Expr vector_tanh(const Halide::Expr& x);
/// Halide's extents are int.
inline int to_int(int64_t v) { return static_cast<int>(v); }

/// Halide's own test makes a mask of more than eight lanes by shuffles.
Halide::Expr is_not_a_number(const Halide::Expr& x);

/// a / b of real numbers, by a division: Halide multiplies by the reciprocal of a constant.
Halide::Expr nearest_quotient(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace collage::native
