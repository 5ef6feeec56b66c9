// CoverVariations: the problems that covers are searched for, a row each. A row says whether its
// problem is worth a search, and how it is searched; one loop runs them all (cover_search.cc), and
// each cover carries the name of its row (Cover::origin). The report counts by row what was
// searched and what was chosen.
//
// To add a row: a function in cover_variations.cc, and a line of the table there.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "choose/cover_problem.h"
#include "choose/cover_search.h"
#include "search/search.h"

namespace collage {

// What rows look at.
struct VariationContext {
  const DataflowGraph& graph;
  CoverProblem& problem;
  size_t top_k = kTopCovers;
  Target host = {};
  Cover cheapest = {};  // once it was found
  // Of variations of found covers: these, who knows the costs of merged kernels, and what is
  // demanded of them. The row says which cover it varies, and where its own goes in the list.
  std::span<const NamedCover> found = {};
  MeasuredCosts* costs = nullptr;
  VariantDemands demands = {};
  size_t varied = 0, position = 0;
};

using FindCover = std::function<Result<SearchResult>(const SearchProblem& problem)>;

struct CoverVariation {
  const char* origin;
  const char* name;  // of its covers; {} stands for what it is of
  // Once, for each target but the host, or once where there are covers.
  enum Of { kProblem, kSingleBackend, kMostlyOne, kFoundCovers } of;
  Result<std::optional<FindCover>> (*search)(VariationContext& context, const Target& target);
};

std::span<const CoverVariation> cover_variations();

// A single-backend cover exists where the backend does at least this part of the arithmetic; one of
// mostly that backend also where it does this part of what is moved.
inline constexpr double kSingleBackendWork = 0.9;

}  // namespace collage
