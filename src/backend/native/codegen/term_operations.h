// What single terms are as Halide expressions.
#pragma once

#include <Halide.h>

#include <optional>
#include <vector>

#include "tensor_program/program.h"

namespace collage::native {

Halide::Expr constant(const tensor_program::TermNode& term);
/// An operation on arguments that are expressions already; no constant, variable or load.
Halide::Expr operation(const tensor_program::TermNode& term, const std::vector<Halide::Expr>& args);
/// A sum, difference or product of integers of 32 or 64 bits that are data: of such Halide takes
/// for granted that none overflows; this wraps around. Undefined for others.
Halide::Expr wrapping_operation(const tensor_program::TermNode& term,
                                const std::vector<Halide::Expr>& args);
/// An element of an update: what it was, and what it is combined with.
Halide::Expr combined(tensor_program::Combine combine, const Halide::Expr& a,
                      const Halide::Expr& b);

/// x, where the term is cast(T, clamp(x, T's least, T's largest)) of an int32 to a smaller T.
const tensor_program::Term* saturated_by(const tensor_program::TermNode& term);

/// A real number that is rounded and cut off at whole numbers within ±2^22.
struct RoundedWithin {
  tensor_program::Term value;
  int64_t low = 0, high = 0;
};
/// clamp(round(value), low, high)
std::optional<RoundedWithin> rounded_within(const tensor_program::Term& term);

/// That as an integer of a small type T, which holds all of them with `added` to them.
struct Quantised {
  RoundedWithin steps;
  int64_t added = 0;
};
/// cast(T, int32(clamp(round(value), low, high)) + added), or the same with the clamp behind the
/// sum.
std::optional<Quantised> quantised_by(const tensor_program::TermNode& term);

}  // namespace collage::native
