#include "choose/merged_cover.h"

#include <algorithm>

#include "choose/cover_problem.h"
#include "ir/visitor.h"
#include "partition/merge.h"
#include "search/search.h"

namespace collage {

namespace {

// A candidate of those nodes and that target; none: their number.
size_t find_candidate(const std::vector<CostedCandidate>& candidates,
                      const CandidatePartition& kernel) {
  auto it = std::find_if(candidates.begin(), candidates.end(), [&](const CostedCandidate& other) {
    return other.partition.spec == kernel.spec &&
           other.partition.sub_graph.inside() == kernel.sub_graph.inside();
  });
  return static_cast<size_t>(it - candidates.begin());
}

}  // namespace

Result<CoverSearch> with_merged_cover(const DataflowGraph& graph, CoverSearch search,
                                      MeasuredCosts& costs, const VariantDemands& demands) {
  std::vector<CostedCandidate> candidates = search.candidates;
  // The best cover in which anything can be merged.
  std::vector<CandidatePartition> kernels, merged;
  auto best = search.covers.begin();
  for (; best != search.covers.end(); ++best) {
    kernels.clear();
    for (const CoverKernel& kernel : best->kernels)
      kernels.push_back(candidates[kernel.candidate].partition);
    merged = merge_touching(graph, kernels);
    if (merged.size() < kernels.size()) break;
  }
  if (best == search.covers.end()) return search;

  std::vector<size_t> members;  // of the new cover: candidates
  for (CandidatePartition& kernel : merged) {
    size_t known = find_candidate(candidates, kernel);
    if (known == candidates.size()) {
      Function function = TRY(inline_calls(kernel.sub_graph.extract(graph)));
      candidates.push_back({std::move(kernel), std::move(function), nullptr});
    }
    CostedCandidate& whole = candidates[known];
    if (!whole.has_cost() && (whole.costs == nullptr || whole.works())) {
      const Target& target = whole.partition.spec->target;
      if (costs.is_frozen() && !costs.is_known(whole.function, target)) return search;
      TargetCosts entry = std::move(TRY(costs.function_costs(whole.function, {target})).at(0));
      leave_out(whole.function, entry, demands);
      whole.costs = std::make_shared<const TargetCosts>(std::move(entry));
    }
    if (candidates[known].has_cost()) {
      members.push_back(known);
      continue;
    }
    // It does not work, or is the host's and new: what it was made of stays.
    const IndexSet& nodes = candidates[known].partition.sub_graph.inside();
    for (const CoverKernel& part : best->kernels)
      if (candidates[part.candidate].partition.sub_graph.inside().is_subset_of(nodes))
        members.push_back(part.candidate);
  }
  if (members.size() == kernels.size()) return search;

  std::vector<CostedCandidate> fixed;
  for (size_t member : members) fixed.push_back(candidates[member]);
  CoverProblem problem(graph, std::move(fixed), costs);
  SearchOptions options;
  options.top_k = 1;
  const Result<SearchResult> found =
      problem.settle([&] { return search_covers(problem.problem(), options); });
  if (!found && costs.is_frozen()) return search;
  TRY(found.status());
  NamedCover cover =
      named_cover(problem, best->name + " merged", best->single_backend, found->covers.at(0));
  for (CoverKernel& kernel : cover.kernels) kernel.candidate = members[kernel.candidate];
  search.covers.insert(best + 1, std::move(cover));
  search.candidates = std::move(candidates);
  return search;
}

}  // namespace collage
