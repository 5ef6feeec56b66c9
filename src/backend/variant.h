// Variant: one way a backend can compute a candidate: an algorithm or schedule, the encodings it
// takes and gives, what it rounds and what it has to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/rounding.h"
#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

// As the constant is given.
inline const std::string kPlainWeights = "plain";

// What a kernel has to do, beside what its function's operators say (report/least_work.h).
struct Work {
  // Multiplications for each one that products and convolutions count: (m+2)^2/(3m)^2 by
  // Winograd's F(m x m, 3x3), 3 where numbers are multiplied as sums of two parts.
  double multiplications = 1;
  // The numbers that it multiplies: "float32", "bfloat16", "int16", "int8", or "any" where a
  // library does not say.
  std::string unit = "float32";
  // Of the bytes of float32 constants, how many it keeps.
  double constants = 1;
  // It moves no bytes: its buffers lie in one another.
  bool in_place = false;

  // Of F(side x side, 3x3).
  static Work of_winograd(int side) {
    const double along = (side + 2.0) / (3.0 * side);
    return {.multiplications = along * along};
  }
  bool operator==(const Work&) const = default;
};

struct Variant {
  // For people, and for keys: unique among the variants of a candidate that have equal encodings
  // ("direct", "winograd4 k2 x7"). Nobody reads anything from it.
  std::string name;
  std::vector<Encoding> inputs;   // one per function parameter
  std::vector<Encoding> outputs;  // one per result leaf
  // How it is computed, in words that its backend alone reads: the backend compiles from function
  // and variant, in another process too.
  std::string schedule = {};
  // What it rounds, by which its tolerance grows, and by which it is allowed or not.
  Rounding rounding = {};
  Work work = {};
  // What it makes of numbers that are not finite, where that is not what the operators'
  // definitions say. Either is allowed by default and left out under `--accuracy strict`.
  //
  // A result that should be NaN may be any number. Set by `offered_variants` (offer.h), from
  // BackendTraits::loses_nan.
  bool loses_nan = false;
  // A NaN or an infinity among the inputs may make NaN of results near by that should be numbers,
  // or infinite (a tile of Winograd; an infinity that is cut into a sum of two numbers).
  bool spreads_nan = false;
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
  // It computes in a smaller type than float32, somewhere inside or at its boundary.
  bool lowered() const { return rounding.limit() == RoundingLimit::kAny; }
  // Plain encodings for every parameter and result of the function.
  template <typename FunctionPtr>
  static Variant plain(std::string name, const FunctionPtr& function);
};

// Of schedules that are positions in the list of what a backend offers: which of that many, if any.
std::optional<size_t> position_in(std::string_view schedule, size_t count);

// Whether a variant's encodings fit a function of these inputs and outputs: their number, and
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
