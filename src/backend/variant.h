// Variant: one way a backend can compute a candidate: an algorithm or schedule, the encodings it
// takes and gives, its rounding and its work.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/rounding.h"
#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

// The constant is kept as given.
inline const std::string kPlainWeights = "plain";

// The work of a kernel beyond what its function's operators state (report/least_work.h).
struct Work {
  // Multiplications for each one that products and convolutions count: (m+2)^2/(3m)^2 by
  // Winograd's F(m x m, 3x3), 3 where numbers are multiplied as sums of two parts.
  double multiplications = 1;
  // The type of the numbers that it multiplies: "float32", "bfloat16", "int16", "int8", or "any" if
  // a library does not tell.
  std::string unit = "float32";
  // The part of the bytes of float32 constants that it keeps.
  double constants = 1;
  // It moves no bytes: its buffers lie in one another.
  bool in_place = false;

  // The work of F(side x side, 3x3).
  static Work of_winograd(int side) {
    const double along = (side + 2.0) / (3.0 * side);
    return {.multiplications = along * along};
  }
  bool operator==(const Work&) const = default;
};

struct Variant {
  // A name for people and keys: unique among the variants of a candidate that have equal encodings
  // ("direct", "winograd4 k2 x7"). No code reads anything from it.
  std::string name;
  std::vector<Encoding> inputs;   // one per function parameter
  std::vector<Encoding> outputs;  // one per result leaf
  // The schedule, in a form that its backend alone reads: the backend compiles from function and
  // variant, in another process too.
  std::string schedule = {};
  // Its rounding, which determines its tolerance, and whether it is allowed.
  Rounding rounding = {};
  Work work = {};
  // Deviations from the operators' definitions for numbers that are not finite. Either is allowed
  // by default and left out under `--accuracy strict`.
  //
  // A result that should be NaN may be any number. Set by `offered_variants` (offer.h), from
  // BackendTraits::loses_nan.
  bool loses_nan = false;
  // A NaN or an infinity among the inputs may make NaN of nearby results that should be numbers, or
  // infinite (a tile of Winograd; an infinity that is split into a sum of two numbers).
  bool spreads_nan = false;
  // The form of large constants of anchors in its kernel: kernels of one form, of any variants and
  // functions, keep equal constants in equal bytes. Empty: a form of its own.
  std::string weights = kPlainWeights;
  // Compares name and encodings: the rest follows from them, and a library may plan another form of
  // weights when it is asked again.
  bool operator==(const Variant& other) const {
    return name == other.name && inputs == other.inputs && outputs == other.outputs;
  }
  std::string to_string() const;  // "direct(float32:aBcd16b)->(float32:aBcd16b)"
  bool keeps_nan() const { return !loses_nan && !spreads_nan; }
  // Returns whether it computes in a smaller type than float32, inside or at its boundary.
  bool lowered() const { return rounding.limit() == RoundingLimit::kAny; }
  // Sets plain encodings for every parameter and result of the function.
  template <typename FunctionPtr>
  static Variant plain(std::string name, const FunctionPtr& function);
};

// Returns the position in a list of `count` schedules that a schedule states, if it states one.
std::optional<size_t> position_in(std::string_view schedule, size_t count);

// Checks that a variant's encodings fit a function of these inputs and outputs: their number, and
// layouts of the right rank.
Status check_fit(const Variant& variant, const std::vector<TensorType>& inputs,
                 const std::vector<TensorType>& outputs);

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
