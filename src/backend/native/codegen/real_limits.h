// Maxima and minima of real numbers that are NaN where an operand is; Halide's own take either
// operand then. Until code is made of them they are calls, in which a later pass finds reductions
// of whole vectors (horizontal_reductions.h).
#pragma once

#include <Halide.h>

#include <optional>
#include <string>

namespace collage::native {

/// Of float32 and float64.
Halide::Expr larger(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr smaller(const Halide::Expr& a, const Halide::Expr& b);

/// A call that one of them made, and one like it of other operands.
struct Limit {
  Halide::Expr a, b;
  std::string name;  ///< which of them
  Halide::Expr of(const Halide::Expr& x, const Halide::Expr& y) const;
};
std::optional<Limit> limit_of(const Halide::Expr& expr);

/// Makes code of the calls. Goes behind passes that look for them.
void lower_limits(Halide::Pipeline& pipeline);

}  // namespace collage::native
