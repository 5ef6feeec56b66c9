// Quantised tensors as passes see them, and rules that both of their passes use.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "passes/rewrite_rules.h"

namespace collage {

// Arguments of a qnn.dequantize.
struct Dequantised {
  Expr data, scale, zero_point;
  std::optional<int64_t> axis;  // of the parameters, from the start; none for scalars
};
std::optional<Dequantised> dequantised(const Expr& expr);
// Dequantises other integers by the same parameters, which lie along `like.axis`.
Result<Expr> dequantise(const Expr& data, const Dequantised& like, const std::string& origin);

bool holds_bytes(const Expr& expr);  // int8 or uint8
// Returns whether they are the same node, or constants of the same type and values.
bool same_value(const Expr& a, const Expr& b);
// Returns whether it is a constant scale of normal numbers above zero.
bool is_positive(const Expr& scale);

// Rules that exchange operators which only move elements with a qnn.dequantize in front of them, so
// that they move integers, and evaluate qnn.quantize of constants.
std::span<const RewriteRule> moved_dequantize_rules();

}  // namespace collage
