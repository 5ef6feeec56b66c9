// SearchProblem: the search's input, independent of how costs were found: a dataflow graph, its
// candidates with the cost of each variant, and the cost of conversions.
//
// Exactly one chosen candidate covers every operator call that needs a kernel (node_role kKernel).
// The host handles tuples, projections and views for nothing: a view takes its input in plain
// encoding and gives a plain result. The function's parameters exist in plain encoding, its results
// are wanted in it: on the host, or on the device where the caller has them (StatedPlaces). A
// program has steps that copy such tensors from the host and to it, which a run leaves out and a
// cover has for nothing; it copies what the cover uses elsewhere (Executor), which costs what a
// conversion costs. A candidate that gives a view of a tensor it only takes is never chosen.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "backend/variant.h"
#include "partition/candidate.h"

namespace collage {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct VariantCost {
  Variant variant;
  double seconds = 0;  // infinity: it cannot be used
  double error = 0;    // that its kernel adds to a cover's, see SearchProblem::max_error
};

struct CandidateCosts {
  const CandidatePartition* candidate = nullptr;
  std::vector<VariantCost> variants;
  bool is_usable() const {  // as some variant
    return std::any_of(variants.begin(), variants.end(),
                       [](const VariantCost& variant) { return variant.seconds < kInfinity; });
  }
};

// Seconds to change the encoding of a tensor of that (logical) type; infinity if it is impossible.
// Must be a pure function.
using ConversionCost =
    std::function<double(const TensorType& type, const Encoding& from, const Encoding& to)>;

struct SearchProblem {
  const DataflowGraph* graph = nullptr;
  std::vector<CandidateCosts> candidates;
  ConversionCost conversion_cost;
  // Encodings beside those of variants through which a tensor of that type may be converted.
  std::function<std::set<Encoding>(const TensorType& type)> passing_encodings = {};
  double launch_penalty = 0;  // seconds, for each kernel and each conversion
  // A cover's error is the root of the sum of its kernels' squared errors.
  double max_error = kInfinity;
  bool views_need_kernels = false;  // views are operator calls like any other, of no plain alias
};

}  // namespace collage
