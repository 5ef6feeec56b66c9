#include "choose/lowered_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "ir/visitor.h"

namespace collage {

namespace {

// What a lowered kernel of several products, one after the other, errs by at least: on the random
// data that it was measured with errors average out as they do not with a model's weights.
double least_error(const Function& function) {
  constexpr double kRoundoff = 0x1p-9;
  std::unordered_map<const ExprNode*, double> products;  // on the way to each node, at most
  double most = 0;
  for (const Expr& expr : post_order(function->body)) {
    double& here = products[expr.get()];
    for (const Expr& input : expr_inputs(expr)) here = std::max(here, products[input.get()]);
    if (const auto* call = as<CallNode>(expr); call != nullptr && call->op != nullptr)
      here += call->op->kind == FusionKind::kAnchor;
    most = std::max(most, here);
  }
  return most > 1 ? kRoundoff * std::sqrt(most) : 0;
}

// What a lowered kernel adds to the error of a cover. Its inputs and results were rounded when it
// was measured: a tensor between two kernels counts where it is read.
double added_error(const MeasuredVariant& row, const Function& function) {
  constexpr double kRounding = 1.6e-3, kLeastPart = 0.3;  // of random numbers, relative
  const bool rounds_results =
      std::all_of(row.variant.outputs.begin(), row.variant.outputs.end(),
                  [](const Encoding& output) { return output.dtype == DType::kBFloat16; });
  double error = row.error;
  if (rounds_results)
    error = std::max(std::sqrt(std::max(error * error - kRounding * kRounding, 0.0)),
                     kLeastPart * error);
  return std::max(error, least_error(function));
}

}  // namespace

Result<std::vector<CostedCandidate>> with_lowered_variants(
    const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
    MeasuredCosts& costs, Progress* progress) {
  std::vector<CostedCandidate> result = candidates;
  std::vector<size_t> lowering;
  std::vector<CandidatePartition> partitions;
  for (size_t c = 0; c < candidates.size(); ++c)
    if (find_backend(candidates[c].partition.spec->target.kind)->traits().lowers) {
      lowering.push_back(c);
      partitions.push_back(candidates[c].partition);
    }
  // The others of these too: what is priced is measured.
  std::vector<CostedCandidate> full = TRY(cost_candidates(graph, partitions, costs, progress));
  std::vector<CostedCandidate> lowered =
      TRY(cost_candidates(graph, std::move(partitions), costs, progress, RoundingLimit::kAny));
  // Candidates of equal structure go on sharing their costs.
  std::map<std::pair<const TargetCosts*, const TargetCosts*>, std::shared_ptr<const TargetCosts>>
      known;
  for (size_t i = 0; i < lowering.size(); ++i) {
    CostedCandidate& candidate = result[lowering[i]];
    if (full[i].costs == nullptr) continue;
    std::shared_ptr<const TargetCosts>& all = known[{candidate.costs.get(), full[i].costs.get()}];
    if (all == nullptr) {
      all = full[i].costs;
      if (candidate.costs != nullptr) all = numbered_as(*candidate.costs, all);
      auto both = std::make_shared<TargetCosts>(*all);
      if (lowered[i].costs == nullptr || lowered[i].costs->variants.empty()) {
        candidate.costs = all;
        continue;
      }
      both->refusal.clear();
      for (const MeasuredVariant& row : lowered[i].costs->variants) {
        both->variants.push_back(row);
        both->variants.back().error = added_error(row, candidate.function);
      }
      all = std::move(both);
    }
    candidate.costs = all;
  }
  return result;
}

}  // namespace collage
