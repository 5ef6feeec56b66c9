#include "choose/cover_problem.h"

#include <algorithm>
#include <limits>

#include "partition/stated_kernels.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

constexpr const char* kPlaceholder = "unmeasured";

// Whether it is worth asking for.
bool is_unmeasured(const MeasuredVariant& row) {
  return std::holds_alternative<Unknown>(row.cost) && !row.tried;
}

// Of a candidate that nobody was asked about: one plain variant of unknown cost.
std::shared_ptr<const TargetCosts> unknown_costs(const CostedCandidate& candidate) {
  auto costs = std::make_shared<TargetCosts>();
  costs->target = candidate.partition.spec->target.to_string();
  costs->variants.push_back({Variant::plain(kPlaceholder, candidate.function), Unknown{}});
  return costs;
}

bool is_placeholder(const TargetCosts& costs) {
  return costs.variants.size() == 1 && costs.variants[0].variant.name == kPlaceholder;
}

}  // namespace

CoverProblem::CoverProblem(const DataflowGraph& graph, std::vector<CostedCandidate> candidates,
                           CostEstimator& estimator, const CoverCharges& charges)
    : graph_(graph),
      candidates_(std::move(candidates)),
      estimator_(estimator),
      charges_(charges),
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
    return graph_.stated_kernels().converted_to(type);
  };
  for (CostedCandidate& candidate : candidates_) number(candidate);
  settle_ties();
}

void CoverProblem::number(CostedCandidate& candidate) {
  if (candidate.costs == nullptr) candidate.costs = unknown_costs(candidate);
  problem_.candidates.push_back({&candidate.partition, {}});
  fill(problem_.candidates.size() - 1);
}

size_t CoverProblem::add(CostedCandidate candidate) {
  candidates_.push_back(std::move(candidate));
  number(candidates_.back());
  for (size_t c = 0; c < candidates_.size(); ++c)  // they may lie elsewhere now
    problem_.candidates[c].candidate = &candidates_[c].partition;
  settle_ties();
  return candidates_.size() - 1;
}

void CoverProblem::answer(size_t candidate, std::shared_ptr<const TargetCosts> costs) {
  candidates_[candidate].costs = std::move(costs);
  fill(candidate);
  settle_ties();
}

void CoverProblem::fill_all() {
  for (size_t c = 0; c < candidates_.size(); ++c) fill(c);
  settle_ties();
}

void CoverProblem::settle_ties() {
  for (const auto& [row, seconds] : understated_) fill(row.first);
  understated_ = collage::settle_ties(candidates_, problem_);
}

double CoverProblem::understated(const Cover::Kernel& kernel) const {
  const auto found = understated_.find({kernel.candidate, kernel.variant});
  return found != understated_.end() ? found->second : 0;
}

std::set<size_t> CoverProblem::inside_others(const Target& target) const {
  std::set<size_t> inside;
  std::vector<size_t> own;
  for (size_t c = 0; c < candidates_.size(); ++c)
    if (candidates_[c].partition.spec->target == target && problem_.candidates[c].is_usable())
      own.push_back(c);
  auto nodes = [&](size_t c) -> const IndexSet& {
    return candidates_[c].partition.sub_graph.inside();
  };
  std::stable_sort(own.begin(), own.end(),
                   [&](size_t a, size_t b) { return nodes(a).size() > nodes(b).size(); });
  IndexSet taken;
  for (size_t c : own) {
    if (nodes(c).is_subset_of(taken)) {
      inside.insert(c);
    } else if (!nodes(c).intersects(taken)) {
      taken |= nodes(c);
    }
  }
  return inside;
}

bool CoverProblem::own_pool(const Cover::Kernel& kernel) const {
  const Backend* backend = find_backend(candidates_[kernel.candidate].partition.spec->target.kind);
  return backend != nullptr && backend->traits().brings_own_threads;
}

void CoverProblem::fill(size_t c) {
  problem_.candidates[c].variants.clear();
  const CostedCandidate& candidate = candidates_[c];
  const double penalty = own_pool({c, 0}) ? charges_.pool_switch : 0;
  const std::string& stated = graph_.stated_kernels().variant(candidate.partition);
  const auto is_usable = [&](const MeasuredVariant& row) {
    if (std::holds_alternative<Invalid>(row.cost)) return false;
    // The host's, which may not have been asked yet, has one.
    if (!stated.empty() && !candidate.is_host() && stated != row.variant.to_string()) return false;
    if (!graph_.stated_places().hold(graph_, candidate.partition.sub_graph, row.variant.inputs,
                                     row.variant.outputs))
      return false;
    return !only_known_ || candidate.is_host() || !is_unmeasured(row) ||
           tensor_program::is_local(candidate.function);
  };
  for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
    const MeasuredVariant& row = candidate.costs->variants[v];
    double seconds = kInfinity;
    if (is_usable(row)) {
      const Measured* m = measured(row.cost);
      seconds = penalty + (m != nullptr ? m->seconds()
                                        : estimator_.kernel_estimate(candidate.function,
                                                                     *candidate.costs, v));
    }
    problem_.candidates[c].variants.push_back({row.variant, seconds, row.error});
  }
}

double CoverProblem::conversion_seconds(const TensorType& type, const Encoding& from,
                                        const Encoding& to) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!graph_.stated_kernels().allow_conversion(type, from, to)) return kNever;
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
  if (!only_known_ && estimator_.only_knows()) {  // from now on
    only_known_ = true;
    fill_all();
    return true;
  }
  bool asked = false;
  for (const Cover& cover : covers)
    for (const ChosenConversion& conversion : cover.conversions) asked |= TRY(ask_for(conversion));
  // Which variants the problem has may change with an answer.
  std::map<std::pair<size_t, size_t>, std::shared_ptr<const TargetCosts>> used;
  for (const Cover& cover : covers)
    for (const Cover::Kernel& kernel : cover.kernels)
      used[{kernel.candidate, kernel.variant}] = candidates_[kernel.candidate].costs;
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
  for (const auto& [known, question] : question_of)
    if (!is_placeholder(*known)) answers.at(question) = numbered_as(*known, answers.at(question));
  for (CostedCandidate& candidate : candidates_)
    if (const auto it = question_of.find(candidate.costs.get()); it != question_of.end())
      candidate.costs = answers.at(it->second);
  fill_all();  // answers change what is estimated of others
  return true;
}

Result<bool> CoverProblem::ask_for(const ChosenConversion& conversion) {
  const TensorType type = type_of(conversion.tensor);
  std::optional<ConversionRow>& known =
      conversions_[{type.to_string(), conversion.from, conversion.to}];
  if (known) return false;
  if (estimator_.only_knows()) return false;
  known = TRY(estimator_.conversion_cost(type, conversion.from, conversion.to));
  return true;
}

}  // namespace collage
