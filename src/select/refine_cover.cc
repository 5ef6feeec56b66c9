#include "select/refine_cover.h"

#include <map>

#include "base/interrupt.h"
#include "cover/cover_problem.h"
#include "search/evolution.h"

namespace collage {

namespace {

constexpr uint64_t kRefineSeed = 1;
constexpr size_t kChildren = 6;  // of a generation

size_t generations(Effort effort) {
  return effort == Effort::kFast ? 1 : effort == Effort::kDefault ? 3 : 8;
}

// Candidates of equal function and target share their costs, and are one gene.
std::vector<size_t> genes_of(const std::vector<CostedCandidate>& candidates) {
  std::map<const TargetCosts*, size_t> known;
  std::vector<size_t> genes;
  for (const CostedCandidate& candidate : candidates)
    genes.push_back(known.try_emplace(candidate.costs.get(), known.size()).first->second);
  return genes;
}

}  // namespace

Result<ChosenCover> refine_cover(const DataflowGraph& graph, CostEstimator& estimator,
                                 Effort effort, const Choose& choose, ChosenCover chosen,
                                 CoverSearch& found) {
  CoverProblem problem(graph, found.candidates, estimator);
  Evolution evolution(problem.problem(), genes_of(found.candidates), kRefineSeed);
  std::vector<NamedCover>& covers = found.covers;
  size_t learnt = 0;
  auto learn = [&] {
    for (; learnt < covers.size(); ++learnt) {
      if (!chosen.timed[learnt].measured) continue;
      Cover cover;
      for (const CoverKernel& kernel : covers[learnt].kernels)
        if (auto variant = problem.problem_variant(kernel.candidate, kernel.variant))
          cover.kernels.push_back({kernel.candidate, *variant});
      evolution.learn(cover, chosen.timed[learnt].measured->median);
    }
  };
  for (size_t left = generations(effort); left > 0 && !interrupted(); --left) {
    learn();
    std::vector<Cover> bred = evolution.breed(kChildren);
    if (bred.empty()) break;
    TRY(problem.measure(bred));
    for (const Cover& cover : bred)
      covers.push_back(
          named_cover(problem, "evolved " + std::to_string(covers.size() + 1), false, cover));
    found.candidates = problem.candidates();
    chosen = TRY(choose(covers));
  }
  return chosen;
}

}  // namespace collage
