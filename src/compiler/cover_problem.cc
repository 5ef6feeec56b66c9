#include "compiler/cover_problem.h"

#include <algorithm>
#include <limits>

#include "base/stopwatch.h"

namespace collage {

namespace {

// The host's stand-in until it is measured: one plain variant of unknown cost.
std::shared_ptr<const TargetCosts> unmeasured(const CostedCandidate& candidate) {
  auto costs = std::make_shared<TargetCosts>();
  costs->target = candidate.partition.spec->target.to_string();
  costs->variants.push_back({Variant::plain("unmeasured", candidate.function), Unknown{}});
  return costs;
}

}  // namespace

CoverProblem::CoverProblem(const DataflowGraph& graph, std::vector<CostedCandidate>& candidates,
                           MeasuredCosts& costs)
    : candidates_(candidates), costs_(costs) {
  problem_.graph = &graph;
  problem_.launch_penalty = kLaunchPenalty;
  problem_.conversion_cost = [this](const TensorType& type, const Encoding& from,
                                    const Encoding& to) {
    return conversion_seconds(type, from, to);
  };
  for (CostedCandidate& candidate : candidates_) {
    if (candidate.costs == nullptr) candidate.costs = unmeasured(candidate);
    problem_.candidates.push_back({&candidate.partition, {}});
    variants_.emplace_back();
    fill(problem_.candidates.size() - 1);
  }
}

SearchProblem CoverProblem::with_maximal_regions(const Target& target) const {
  SearchProblem restricted = problem_;
  std::vector<size_t> own;
  for (size_t c = 0; c < candidates_.size(); ++c)
    if (candidates_[c].partition.spec->target == target && !problem_.candidates[c].variants.empty())
      own.push_back(c);
  auto nodes = [&](size_t c) -> const IndexSet& {
    return candidates_[c].partition.sub_graph.inside();
  };
  std::stable_sort(own.begin(), own.end(),
                   [&](size_t a, size_t b) { return nodes(a).size() > nodes(b).size(); });
  IndexSet taken;
  for (size_t c : own) {
    if (nodes(c).is_subset_of(taken)) {
      restricted.candidates[c].variants.clear();
    } else if (!nodes(c).intersects(taken)) {
      taken |= nodes(c);
    }
  }
  return restricted;
}

std::optional<size_t> CoverProblem::problem_variant(size_t candidate, size_t costed) const {
  const std::vector<size_t>& known = variants_[candidate];
  auto it = std::find(known.begin(), known.end(), costed);
  if (it == known.end()) return std::nullopt;
  return static_cast<size_t>(it - known.begin());
}

bool CoverProblem::own_pool(const ChosenKernel& kernel) const {
  return find_backend(candidates_[kernel.candidate].partition.spec->target.kind)
      ->brings_own_threads();
}

void CoverProblem::fill(size_t c) {
  problem_.candidates[c].variants.clear();
  variants_[c].clear();
  const TargetCosts& costs = *candidates_[c].costs;
  double penalty = own_pool({c, 0}) ? kPoolSwitch : 0;
  for (size_t v = 0; v < costs.variants.size(); ++v) {
    const MeasuredVariant& row = costs.variants[v];
    if (std::holds_alternative<Invalid>(row.cost)) continue;
    const Measured* m = measured(row.cost);
    problem_.candidates[c].variants.push_back(
        {row.variant,
         (m != nullptr ? m->seconds() : analytic_seconds(candidates_[c].function)) + penalty});
    variants_[c].push_back(v);
  }
}

double CoverProblem::conversion_seconds(const TensorType& type, const Encoding& from,
                                        const Encoding& to) {
  auto [it, inserted] = conversions_.try_emplace({type.to_string(), from, to},
                                                 std::numeric_limits<double>::infinity());
  if (!inserted) return it->second;
  const Stopwatch watch;
  Result<MeasuredCosts::Conversion> conversion = costs_.conversion_cost(type, from, to);
  converting_seconds_ += watch.seconds();
  if (!conversion) {
    failure_ = conversion.status();
  } else if (const Measured* m = measured(conversion->cost)) {
    it->second = m->seconds();
  }
  return it->second;
}

Result<bool> CoverProblem::measure_unknown(const SearchResult& result) {
  std::vector<size_t> unknown;
  for (const Cover& cover : result.covers)
    for (const ChosenKernel& kernel : cover.kernels)
      if (std::holds_alternative<Unknown>(
              candidates_[kernel.candidate]
                  .costs->variants[variants_[kernel.candidate][kernel.variant]]
                  .cost))
        unknown.push_back(kernel.candidate);
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  for (size_t c : unknown) {
    CostedCandidate& candidate = candidates_[c];
    std::vector<TargetCosts> answer =
        TRY(costs_.function_costs(candidate.function, {candidate.partition.spec->target}));
    candidate.costs = std::make_shared<const TargetCosts>(std::move(answer[0]));
    fill(c);
  }
  return !unknown.empty();
}

}  // namespace collage
