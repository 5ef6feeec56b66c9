#include "cover/cover_problem.h"

#include <algorithm>
#include <limits>

#include "base/interrupt.h"

namespace collage {

namespace {

// Of a candidate that nobody was asked about: one plain variant of unknown cost.
std::shared_ptr<const TargetCosts> unknown_costs(const CostedCandidate& candidate) {
  auto costs = std::make_shared<TargetCosts>();
  costs->target = candidate.partition.spec->target.to_string();
  costs->variants.push_back({Variant::plain("unmeasured", candidate.function), Unknown{}});
  return costs;
}

}  // namespace

CoverProblem::CoverProblem(const DataflowGraph& graph, std::vector<CostedCandidate> candidates,
                           CostEstimator& estimator, const CoverCharges& charges)
    : graph_(graph),
      candidates_(std::move(candidates)),
      estimator_(estimator),
      charges_(charges),
      variants_(candidates_.size()) {
  problem_.graph = &graph;
  problem_.launch_penalty = charges.launch;
  problem_.conversion_cost = [this](const TensorType& type, const Encoding& from,
                                    const Encoding& to) {
    return conversion_seconds(type, from, to);
  };
  for (size_t c = 0; c < candidates_.size(); ++c) {
    if (candidates_[c].costs == nullptr) candidates_[c].costs = unknown_costs(candidates_[c]);
    problem_.candidates.push_back({&candidates_[c].partition, {}});
    fill(c);
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

bool CoverProblem::add_up(Cover& cover) const {
  cover.seconds = 0;
  for (const ChosenKernel& kernel : cover.kernels) {
    const std::vector<VariantCost>& variants = problem_.candidates[kernel.candidate].variants;
    if (kernel.variant >= variants.size()) return false;
    cover.seconds += variants[kernel.variant].seconds + charges_.launch;
  }
  for (ChosenConversion& conversion : cover.conversions) {
    conversion.seconds =
        problem_.conversion_cost(type_of(conversion.tensor), conversion.from, conversion.to);
    cover.seconds += conversion.seconds + charges_.launch;
  }
  return true;
}

std::optional<size_t> CoverProblem::problem_variant(size_t candidate, size_t costed) const {
  const std::vector<size_t>& known = variants_[candidate];
  auto it = std::find(known.begin(), known.end(), costed);
  if (it == known.end()) return std::nullopt;
  return static_cast<size_t>(it - known.begin());
}

bool CoverProblem::own_pool(const ChosenKernel& kernel) const {
  const Backend* backend = find_backend(candidates_[kernel.candidate].partition.spec->target.kind);
  return backend != nullptr && backend->brings_own_threads();
}

void CoverProblem::fill(size_t c) {
  problem_.candidates[c].variants.clear();
  variants_[c].clear();
  const CostedCandidate& candidate = candidates_[c];
  const double penalty = own_pool({c, 0}) ? charges_.pool_switch : 0;
  for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
    const MeasuredVariant& row = candidate.costs->variants[v];
    if (std::holds_alternative<Invalid>(row.cost)) continue;
    const Measured* m = measured(row.cost);
    const double seconds =
        m != nullptr ? m->seconds()
                     : estimator_.kernel_estimate(candidate.function, *candidate.costs, v);
    problem_.candidates[c].variants.push_back({row.variant, seconds + penalty});
    variants_[c].push_back(v);
  }
}

double CoverProblem::conversion_seconds(const TensorType& type, const Encoding& from,
                                        const Encoding& to) {
  auto [it, inserted] = conversions_.try_emplace({type.to_string(), from, to});
  if (inserted) it->second = estimator_.known_conversion(type, from, to);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (it->second) {
    if (const Measured* m = measured(it->second->cost)) return m->seconds();
    if (std::holds_alternative<Invalid>(it->second->cost)) return kNever;
  } else if (only_known_) {
    return kNever;
  }
  return estimator_.conversion_estimate(type, from, to);
}

TensorType CoverProblem::type_of(const TensorRef& tensor) const {
  return graph_.node(tensor.node).expr->type().leaves().at(tensor.leaf);
}

Result<bool> CoverProblem::ask_for(const std::vector<Cover>& covers) {
  bool asked = false;
  // Which variants there are may change with an answer: of all covers the kernels of before.
  for (const Cover& cover : covers)
    for (const ChosenConversion& conversion : cover.conversions) asked |= TRY(ask_for(conversion));
  std::vector<ChosenKernel> kernels;
  for (const Cover& cover : covers)
    kernels.insert(kernels.end(), cover.kernels.begin(), cover.kernels.end());
  const auto row = [](const ChosenKernel& kernel) {
    return std::pair(kernel.candidate, kernel.variant);
  };
  std::sort(kernels.begin(), kernels.end(),
            [&](const ChosenKernel& a, const ChosenKernel& b) { return row(a) < row(b); });
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  for (size_t k = 0; k < kernels.size(); ++k)
    if (k == 0 || kernels[k].candidate != kernels[k - 1].candidate)
      asked |= TRY(ask_for(kernels[k]));
  return asked;
}

Result<bool> CoverProblem::ask_for(const ChosenKernel& kernel) {
  CostedCandidate& candidate = candidates_[kernel.candidate];
  const size_t costed = costed_variant(kernel);
  const MeasuredVariant& row = candidate.costs->variants[costed];
  if (!std::holds_alternative<Unknown>(row.cost) || row.tried ||
      !asked_.emplace(kernel.candidate, costed).second)
    return false;
  candidate.costs = std::make_shared<const TargetCosts>(TRY(
      estimator_.kernel_costs(candidate.function, candidate.partition.spec->target, row.variant)));
  fill(kernel.candidate);
  return true;
}

Result<bool> CoverProblem::ask_for(const ChosenConversion& conversion) {
  const TensorType type = type_of(conversion.tensor);
  std::optional<ConversionRow>& known =
      conversions_[{type.to_string(), conversion.from, conversion.to}];
  if (known) return false;
  if (interrupted()) return !std::exchange(only_known_, true);
  known = TRY(estimator_.conversion_cost(type, conversion.from, conversion.to));
  return true;
}

}  // namespace collage
