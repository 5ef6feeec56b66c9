// Rounds numbers to an element type that is narrower than any DType (narrow_types.h).
#pragma once

#include <string>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

struct Narrowing {
  // For floats: true makes a number that is too large the largest one; false makes it infinity if
  // the type has it, else NaN.
  bool saturate = true;
  std::string round_mode = "up";  // of powers of two: "up", "down" or "nearest"
};
// Reads the node's attributes of these names.
Result<Narrowing> narrowing_of(NodeContext& node);

// Rounds to integers as Cast does: fractions are cut off, and of numbers that are too large the low
// bits stay. Rounds to floats to the nearest, ties to even. Returns the type's carrier.
Result<Expr> narrowed(NodeContext& node, const Expr& data, const NarrowType& to,
                      const Narrowing& how);

}  // namespace collage::frontend
