// Cover: a choice of kernels that covers a graph, with the conversions between them; and the result
// of a search: the best covers, a lower bound, and whether the first is proven to be the best.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/problem.h"

namespace collage {

// A tensor of the graph: a leaf of a node's (possibly tuple) value. Never a projection: that is the
// leaf of the call it projects. A view is a tensor of its own.
struct TensorRef {
  PostDfsIndex node = 0;
  size_t leaf = 0;
  auto operator<=>(const TensorRef&) const = default;
};

// What the search looks for: Cover::origin; the first two are made without one.
inline constexpr const char* kFirstAnswer = "first answer";
inline constexpr const char* kKnownPlan = "known plan";
inline constexpr const char* kCheapest = "cheapest";
// Within 15% of the cheapest one, what predictions may be wrong about as a whole: a target whose
// kernels slow down its neighbours', and costs of small kernels.
inline constexpr const char* kWithoutOneTarget = "without one target";
inline constexpr const char* kFewerKernels = "fewer kernels";
// Likewise, each with a change of its own.
inline constexpr const char* kNextBest = "next best";

struct ChosenConversion {
  TensorRef tensor;
  Encoding from, to;
  double seconds = 0;
  size_t before = 0;  // it runs before that kernel of the cover (their number: after the last one)
};

struct Cover {
  // One of a problem's candidates, run as one of its variants.
  struct Kernel {
    size_t candidate = 0;  // index into SearchProblem::candidates
    size_t variant = 0;    // index into its variants
    double seconds = 0;    // its part of the cover's, with the launch penalty
    bool operator==(const Kernel&) const = default;
  };
  std::vector<Kernel> kernels;                // in an order they can run in
  std::vector<ChosenConversion> conversions;  // in the order of `before`
  double seconds = 0;                         // kernels, conversions and launch penalties
  std::string origin = {};                    // what it was searched for
};

struct SearchCounts {
  size_t searches = 0;  // that were made, those for alternatives among them
  // How many of these the linear program ended: its solution was a cover.
  size_t from_linear_program = 0;
  size_t branches = 0;                           // that the other ones looked at
  std::map<std::string, size_t> of_origin = {};  // searches, by Cover::origin
  SearchCounts& operator+=(const SearchCounts& other) {
    searches += other.searches;
    from_linear_program += other.from_linear_program;
    branches += other.branches;
    for (const auto& [origin, count] : other.of_origin) of_origin[origin] += count;
    return *this;
  }
};

struct SearchResult {
  // Cheapest first; they differ in a kernel's nodes or target.
  std::vector<Cover> covers;
  double lower_bound = 0;  // no cover costs less
  bool exact = false;      // the first cover is proven to be a cheapest one
  SearchCounts counts;
  double seconds = 0;  // time the search took
};

// Returns the tensor that a node of tensor type stands for, looking through projections.
TensorRef tensor_of(const DataflowGraph& graph, PostDfsIndex node);

}  // namespace collage
