// Mathematical functions as vectorisable Halide expressions, within 1e-6 of the exact value
// relative to the largest output, for every kind of number.
#pragma once

#include <Halide.h>

#include <cstdint>

#include "base/integers.h"

namespace collage::native {

using HExpr = Halide::Expr;

/// 0 below -87.7, where the result is below 2^-126. Both within 2e-7 of the value itself.
HExpr vector_exp(const HExpr& x);
HExpr vector_expm1(const HExpr& x);
/// -infinity of 0, NaN of less. Halide's own loses NaN.
HExpr vector_log(const HExpr& x);
HExpr vector_log1p(const HExpr& x);
/// As IEEE 754's pow at its ends; else within 1e-5 of the value itself. Halide's own is not.
HExpr vector_power(const HExpr& x, const HExpr& y);
/// Both within 2.5e-8 of the value itself, beside rounding. Halide's own tanh calls scalar libm,
/// its erf gives NaN far from 0.
HExpr vector_tanh(const HExpr& x);
HExpr vector_erf(const HExpr& x);
/// The larger and the smaller of a number and x, and NaN where x is none, which Halide's own do not
/// promise.
HExpr number_or_larger(const HExpr& low, const HExpr& x);
HExpr number_or_smaller(const HExpr& high, const HExpr& x);
/// Those of -infinity as float32: LLVM takes real numbers of the code for finite.
inline constexpr int32_t kMinusInfinityBits = -0x800000;

/// False where either is NaN, which of Halide's own nobody promises: LLVM may turn one around.
HExpr equal_numbers(const HExpr& a, const HExpr& b);
HExpr less(const HExpr& a, const HExpr& b);
HExpr less_or_equal(const HExpr& a, const HExpr& b);
/// Halide's own test makes a mask of more than eight lanes by shuffles.
HExpr is_not_a_number(const HExpr& x);

/// The integer nearest to x, ties to even, for x from -2^22 to 2^22; and what has its bits, below
/// others, as uint32. Halide rounds AVX-512's vectors by halves.
HExpr nearest_small(const HExpr& x);
HExpr nearest_bits(const HExpr& x);

/// Of real numbers, rounded once, of which either may be infinite.
HExpr exact_sum(const HExpr& a, const HExpr& b);
HExpr exact_difference(const HExpr& a, const HExpr& b);
HExpr exact_product(const HExpr& a, const HExpr& b);
/// a / b of real numbers, by a division: Halide multiplies by the reciprocal of a constant.
HExpr nearest_quotient(const HExpr& a, const HExpr& b);

}  // namespace collage::native
