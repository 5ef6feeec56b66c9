// Mathematical functions as vectorisable Halide expressions, within 1e-6 of the exact value
// relative to the largest output, for every kind of number.
#pragma once

#include <Halide.h>

#include <cstdint>

namespace collage::native {

/// 0 below -87.7, where the result is below 2^-126. Both within 2e-7 of the value itself.
Halide::Expr vector_exp(const Halide::Expr& x);
Halide::Expr vector_expm1(const Halide::Expr& x);
/// -infinity of 0, NaN of less. Halide's own loses NaN.
Halide::Expr vector_log(const Halide::Expr& x);
Halide::Expr vector_log1p(const Halide::Expr& x);
/// As IEEE 754's pow at its ends; else within 1e-5 of the value itself. Halide's own is not.
Halide::Expr vector_power(const Halide::Expr& x, const Halide::Expr& y);
/// Both within 2.5e-8 of the value itself, beside rounding. Halide's own tanh calls scalar libm,
/// its erf gives NaN far from 0.
Halide::Expr vector_tanh(const Halide::Expr& x);
Halide::Expr vector_erf(const Halide::Expr& x);
/// The larger and the smaller of a number and x, and NaN where x is none, which Halide's own do not
/// promise.
Halide::Expr number_or_larger(const Halide::Expr& low, const Halide::Expr& x);
Halide::Expr number_or_smaller(const Halide::Expr& high, const Halide::Expr& x);
/// Those of -infinity as float32: LLVM takes real numbers of the code for finite.
inline constexpr int32_t kMinusInfinityBits = -0x800000;
/// Halide's extents are int.
inline int to_int(int64_t v) { return static_cast<int>(v); }

/// False where either is NaN, which of Halide's own nobody promises: LLVM may turn one around.
Halide::Expr equal_numbers(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr less(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr less_or_equal(const Halide::Expr& a, const Halide::Expr& b);
/// Halide's own test makes a mask of more than eight lanes by shuffles.
Halide::Expr is_not_a_number(const Halide::Expr& x);

/// The integer nearest to x, ties to even, for x from -2^22 to 2^22; and what has its bits, below
/// others, as uint32. Halide rounds AVX-512's vectors by halves.
Halide::Expr nearest_small(const Halide::Expr& x);
Halide::Expr nearest_bits(const Halide::Expr& x);

/// Of real numbers, rounded once, of which either may be infinite.
Halide::Expr exact_sum(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr exact_difference(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr exact_product(const Halide::Expr& a, const Halide::Expr& b);
/// a / b of real numbers, by a division: Halide multiplies by the reciprocal of a constant.
Halide::Expr nearest_quotient(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace collage::native
