// Numbers rounded to an element type that is narrower than any DType (narrow_types.h).
#pragma once

#include <string>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

struct Narrowing {
  // Of floats: what is too large becomes the largest number, else infinity where the type has it,
  // NaN where not.
  bool saturate = true;
  std::string round_mode = "up";  // of powers of two: "up", "down" or "nearest"
};
// By the node's attributes of these names.
Result<Narrowing> narrowing_of(NodeContext& node);

// To integers as Cast does: fractions are cut off, and of what is too large the low bits stay. To
// floats: to the nearest, ties to even. Gives the type's carrier.
Result<Expr> narrowed(NodeContext& node, const Expr& data, const NarrowType& to,
                      const Narrowing& how);

}  // namespace collage::frontend
