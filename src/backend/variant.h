// Variant: one way a backend can compute a candidate: an algorithm or schedule, and the encodings
// it takes and gives.
#pragma once

#include <string>
#include <vector>

#include "backend/rounding.h"
#include "runtime/encoding.h"

namespace collage {

// As the constant is given.
inline const std::string kPlainWeights = "plain";

struct Variant {
  // Algorithm and schedule, unique among the variants of a candidate that have equal encodings:
  // "direct", "winograd", "tile14x1". Part of the cost key and of the report; the backend must be
  // able to compile from (function, variant) alone, in another process.
  std::string name;
  std::vector<Encoding> inputs;   // one per function parameter
  std::vector<Encoding> outputs;  // one per result leaf
  // The algorithm computes with fewer, larger-error operations (Winograd): left out under
  // `--accuracy strict`.
  bool relaxed = false;
  // What it makes of numbers that are not finite, where that is not what the operators'
  // definitions say. Either is allowed by default and left out under `--accuracy strict`.
  //
  // A result that should be NaN may be any number. Set by `offered_variants` (offer.h), from
  // Backend::loses_nan.
  bool loses_nan = false;
  // A NaN or an infinity among the inputs may make NaN of results near by that should be numbers,
  // or infinite (a tile of Winograd; an infinity that is cut into a sum of two numbers).
  bool spreads_nan = false;
  // It computes in a smaller type than float32, somewhere inside or at its boundary: used only by
  // the user's leave (`--max-error`).
  bool lowered = false;
  // What it rounds, by which its tolerance grows. Every relaxed or lowered variant should say so.
  Rounding rounding = {};
  // The form in which its kernel keeps large constants that anchors take: kernels of one form, of
  // whatever variants and functions, keep equal constants in equal bytes. Empty: a form of its own.
  std::string weights = kPlainWeights;
  // By name and encodings: the rest follows from them, and a library may plan another form of
  // weights when it is asked again.
  bool operator==(const Variant& other) const {
    return name == other.name && inputs == other.inputs && outputs == other.outputs;
  }
  std::string to_string() const;  // "direct(float32:aBcd16b)->(float32:aBcd16b)"
  bool keeps_nan() const { return !loses_nan && !spreads_nan; }
  // `rounding`; of a lowered or relaxed variant that states none: bfloat16's, or Winograd's.
  Rounding effective_rounding() const;
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
