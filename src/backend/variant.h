// Variant: one way a backend can compute a candidate: an algorithm or schedule, and the encodings
// it takes and gives.
#pragma once

#include <string>
#include <vector>

#include "runtime/encoding.h"

namespace collage {

struct Variant {
  // Algorithm and schedule, unique among the variants of a candidate that have equal encodings:
  // "direct", "winograd", "tile14x1". Part of the cost key and of the report; the backend must be
  // able to compile from (function, variant) alone, in another process.
  std::string name;
  std::vector<Encoding> inputs;   // one per function parameter
  std::vector<Encoding> outputs;  // one per result leaf
  // The algorithm computes with fewer, larger-error operations (Winograd): verified with a wider
  // tolerance and left out under
  // `--accuracy strict`.
  bool relaxed = false;
  // It computes in a smaller float type than float32, somewhere inside or at its boundary: verified
  // with a tolerance of that type's, and used only by the user's leave (`--max-error`).
  bool lowered = false;
  bool operator==(const Variant&) const = default;
  std::string to_string() const;  // "direct(float32:aBcd16b)->(float32:aBcd16b)"
  // Plain encodings for every parameter and result of the function.
  template <typename FunctionPtr>
  static Variant plain(std::string name, const FunctionPtr& function);
};

template <typename FunctionPtr>
Variant Variant::plain(std::string name, const FunctionPtr& function) {
  Variant variant;
  variant.name = std::move(name);
  for (const auto& param : function->params)
    variant.inputs.push_back(plain_encoding(param->tensor_type()));
  for (const auto& leaf : function->result_type().leaves())
    variant.outputs.push_back(plain_encoding(leaf));
  return variant;
}

}  // namespace collage
