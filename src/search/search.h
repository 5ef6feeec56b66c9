// Searches the cheapest cover, layouts and conversions included.
//
//   SearchResult result = TRY(search_covers(problem));
//   result.covers[0].kernels …
#pragma once

#include <functional>

#include "base/result.h"
#include "search/cover.h"

namespace collage {

struct SearchOptions {
  size_t top_k = 8;  // covers wanted
  // Budget of branches if the linear program's solution is no cover; beyond it the search is not
  // exact.
  int max_branches = 2'000;
  double max_seconds = 10;  // likewise, for emergencies: results then depend on the machine
};

// kUnsupported: some operators are in no usable candidate; the message lists them.
Result<SearchResult> search_covers(const SearchProblem& problem, const SearchOptions& options = {});

// Returns the problem in which no other kernels can be used.
using Allows = std::function<bool(size_t candidate, size_t variant)>;
SearchProblem restricted(SearchProblem problem, const Allows& allows);

// Returns the best cover that uses only `target`'s candidates, and `host`'s for the operators that
// no candidate of `target` holds.
Result<SearchResult> single_backend_cover(const SearchProblem& problem, const Target& target,
                                          const Target& host, const SearchOptions& options = {});
// Returns the same with any candidates for those operators.
Result<SearchResult> mostly_one_backend_cover(const SearchProblem& problem, const Target& target,
                                              const SearchOptions& options = {});

}  // namespace collage
