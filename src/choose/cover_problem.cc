#include "choose/cover_problem.h"

#include <algorithm>
#include <limits>

#include "base/interrupt.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

// Whether it is worth asking for.
bool is_unmeasured(const MeasuredVariant& row) {
  return std::holds_alternative<Unknown>(row.cost) && !row.tried;
}

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
      places_(graph),
      stated_(graph),
      candidates_(std::move(candidates)),
      estimator_(estimator),
      charges_(charges),
      variants_(candidates_.size()),
      only_known_(estimator.only_knows()) {
  problem_.graph = &graph;
  problem_.launch_penalty = charges.launch;
  problem_.views_need_kernels = charges.views_need_kernels;
  problem_.max_error = charges.max_error;
  problem_.conversion_cost = [this](const TensorType& type, const Encoding& from,
                                    const Encoding& to) {
    return conversion_seconds(type, from, to);
  };
  problem_.passing_encodings = [this](const TensorType& type) {
    return stated_.converted_to(type);
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

void CoverProblem::add_up(Cover& cover) const {
  cover.seconds = 0;
  for (const ChosenKernel& kernel : cover.kernels)
    cover.seconds +=
        problem_.candidates[kernel.candidate].variants[kernel.variant].seconds + charges_.launch;
  for (ChosenConversion& conversion : cover.conversions) {
    conversion.seconds =
        problem_.conversion_cost(type_of(conversion.tensor), conversion.from, conversion.to);
    cover.seconds += conversion.seconds + charges_.launch;
  }
}

std::optional<size_t> CoverProblem::problem_variant(size_t candidate, size_t costed) const {
  const std::vector<size_t>& known = variants_[candidate];
  auto it = std::find(known.begin(), known.end(), costed);
  if (it == known.end()) return std::nullopt;
  return static_cast<size_t>(it - known.begin());
}

bool CoverProblem::own_pool(const ChosenKernel& kernel) const {
  const Backend* backend = find_backend(candidates_[kernel.candidate].partition.spec->target.kind);
  return backend != nullptr && backend->traits().brings_own_threads;
}

void CoverProblem::fill(size_t c) {
  problem_.candidates[c].variants.clear();
  variants_[c].clear();
  const CostedCandidate& candidate = candidates_[c];
  const double penalty = own_pool({c, 0}) ? charges_.pool_switch : 0;
  const IndexSet& exits = candidate.partition.sub_graph.exit();
  const std::string& stated = stated_.variant(candidate.partition);
  for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
    const MeasuredVariant& row = candidate.costs->variants[v];
    if (std::holds_alternative<Invalid>(row.cost)) continue;
    // The host's, which may not have been asked yet, has one.
    if (!stated.empty() && !candidate.is_host() && stated != row.variant.to_string()) continue;
    if (!places_.hold(graph_, exits, row.variant.outputs)) continue;
    if (only_known_ && !candidate.is_host() && is_unmeasured(row) &&
        !tensor_program::is_local(candidate.function))
      continue;
    const Measured* m = measured(row.cost);
    const double seconds =
        m != nullptr ? m->seconds()
                     : estimator_.kernel_estimate(candidate.function, *candidate.costs, v);
    problem_.candidates[c].variants.push_back({row.variant, seconds + penalty, row.error});
    variants_[c].push_back(v);
  }
}

double CoverProblem::conversion_seconds(const TensorType& type, const Encoding& from,
                                        const Encoding& to) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!stated_.allow_conversion(type, from, to)) return kNever;
  auto [it, inserted] = conversions_.try_emplace({type.to_string(), from, to});
  if (inserted) it->second = estimator_.known_conversion(type, from, to);
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
  if (interrupted() && !only_known_) {
    only_known_ = true;
    for (size_t c = 0; c < candidates_.size(); ++c) fill(c);
    return true;
  }
  bool asked = false;
  for (const Cover& cover : covers)
    for (const ChosenConversion& conversion : cover.conversions) asked |= TRY(ask_for(conversion));
  // Which variants the problem has may change with an answer.
  std::map<std::pair<size_t, size_t>, std::shared_ptr<const TargetCosts>> used;
  for (const Cover& cover : covers)
    for (const ChosenKernel& kernel : cover.kernels)
      used[{kernel.candidate, costed_variant(kernel)}] = candidates_[kernel.candidate].costs;
  std::vector<KernelQuestion> questions;
  std::map<const TargetCosts*, size_t> question_of;  // candidates that share costs ask once
  for (const auto& [row, known] : used) {
    const MeasuredVariant& variant = known->variants[row.second];
    if (!is_unmeasured(variant) || question_of.count(known.get()) != 0 ||
        !asked_.insert(row).second)
      continue;
    question_of[known.get()] = questions.size();
    const CostedCandidate& candidate = candidates_[row.first];
    questions.push_back({candidate.function, candidate.partition.spec->target, variant.variant});
  }
  if (questions.empty()) return asked;
  std::vector<std::shared_ptr<const TargetCosts>> answers;
  for (TargetCosts& answer : TRY(estimator_.kernel_costs(questions)))
    answers.push_back(std::make_shared<const TargetCosts>(std::move(answer)));
  for (CostedCandidate& candidate : candidates_)
    if (const auto it = question_of.find(candidate.costs.get()); it != question_of.end())
      candidate.costs = answers.at(it->second);
  // Answers change what is estimated of others.
  for (size_t c = 0; c < candidates_.size(); ++c) fill(c);
  return true;
}

Status CoverProblem::measure(std::vector<Cover>& covers) {
  std::vector<std::vector<size_t>> costed;
  for (const Cover& cover : covers) {
    costed.emplace_back();
    for (const ChosenKernel& kernel : cover.kernels)
      costed.back().push_back(costed_variant(kernel));
  }
  TRY(ask_for(covers));
  std::vector<Cover> work;
  for (size_t i = 0; i < covers.size(); ++i) {
    bool works = true;
    for (size_t k = 0; k < costed[i].size() && works; ++k) {
      ChosenKernel& kernel = covers[i].kernels[k];
      const std::optional<size_t> variant = problem_variant(kernel.candidate, costed[i][k]);
      works = variant.has_value();
      kernel.variant = variant.value_or(0);
    }
    if (!works) continue;
    add_up(covers[i]);
    work.push_back(std::move(covers[i]));
  }
  covers = std::move(work);
  return {};
}

Result<bool> CoverProblem::ask_for(const ChosenConversion& conversion) {
  const TensorType type = type_of(conversion.tensor);
  std::optional<ConversionRow>& known =
      conversions_[{type.to_string(), conversion.from, conversion.to}];
  if (known) return false;
  if (interrupted()) return false;
  known = TRY(estimator_.conversion_cost(type, conversion.from, conversion.to));
  return true;
}

}  // namespace collage
