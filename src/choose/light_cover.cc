#include "choose/light_cover.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/offer.h"
#include "base/log.h"
#include "choose/cover_problem.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "partition/lightweight.h"
#include "partition/stated_kernels.h"
#include "partition/stated_targets.h"
#include "search/search.h"

namespace collage {

namespace {

// Of the analytic estimate: how much dearer a variant counts than the one before it, which its
// backend prefers: another algorithm matters, the same one in another layout hardly does.
constexpr double kPerAlgorithm = 0.1, kPerVariant = 0.001;

bool is_usable(const MeasuredVariant& row) {
  return measured(row.cost) != nullptr || (row.tried && std::holds_alternative<Unknown>(row.cost));
}

bool is_untried(const MeasuredVariant& row) {
  return std::holds_alternative<Unknown>(row.cost) && !row.tried;
}

const char* const kPhase = "trying kernels";

const Target& target_of(const CostedCandidate& candidate) {
  return candidate.partition.spec->target;
}

std::string key_of(const CandidatePartition& candidate) {
  return candidate.spec->target.to_string() + " " + candidate.sub_graph.inside().to_string();
}

bool has_usable(const CostedCandidate& candidate) {
  return std::any_of(candidate.costs->variants.begin(), candidate.costs->variants.end(), is_usable);
}

// Estimates served to choose; they are no prediction.
void forget_seconds(NamedCover& cover) {
  cover.seconds = cover.plain_seconds = cover.overlap_seconds = 0;
  for (Cover::Kernel& kernel : cover.kernels) kernel.seconds = 0;
  for (ChosenConversion& conversion : cover.conversions) conversion.seconds = 0;
}

}  // namespace

LightSearch::LightSearch(LightContext context, PartitionSpecPtr leader)
    : graph_(*context.candidates.graph),
      candidates_(context.candidates.found),
      targets_(context.candidates),
      costs_(context.costs),
      demands_(std::move(context.demands)),
      compile_(context.compile),
      compile_kernel_(std::move(context.compile_kernel)),
      progress_(context.progress),
      leader_(std::move(leader)) {}

Result<CoverSearch> LightSearch::find() {
  CoverSearch found;
  while (found.covers.empty()) {
    TRY(choose_boundaries());
    if (costs_.is_stopped()) return error(ErrorCode::kUnavailable, "it was stopped");
    Result<NamedCover> cover = cover_of_chosen();
    if (cover.ok()) {
      if (TRY(compile(*cover))) found.covers.push_back(std::move(cover).value());
      continue;
    }
    // Where a kernel that was thought usable is not, boundaries are chosen again.
    const auto usable = [&](size_t position) { return has_usable(seen_[position]); };
    if (std::all_of(chosen_.begin(), chosen_.end(), usable)) return cover.status();
  }
  if (progress_ != nullptr) progress_->finish(kPhase);
  warn_of_fallbacks(found.covers[0]);
  found.candidates = seen_;
  return found;
}

Result<CoverSearch> LightSearch::find_again(const PlanRow& plan) {
  TRY(adopt_boundaries(plan));
  CoverSearch found = TRY(compiled());
  found.covers[0].name = found.covers[0].origin = kKnownPlan;
  return found;
}

Result<CoverSearch> LightSearch::adopt(const NamedCover& cover,
                                       const std::vector<CostedCandidate>& candidates) {
  std::vector<CandidatePartition> kernels;
  for (const Cover::Kernel& kernel : cover.kernels) {
    kernels.push_back(candidates[kernel.candidate].partition);
    const Variant& variant = row_of(kernel, candidates).variant;
    const std::string key = key_of(kernels.back());
    if (kernels.back().spec->is_host) continue;
    required_[key] = variant.to_string();
    wanted_[key] = variant;
  }
  TRY(try_beside_each_other(kernels));
  for (const CandidatePartition& kernel : kernels) chosen_.insert(TRY(look_at(kernel)));
  CoverSearch found = TRY(compiled());
  if (progress_ != nullptr) progress_->finish(kPhase);
  return found;
}

Result<CoverSearch> LightSearch::compiled() {
  CoverSearch found;
  found.covers.push_back(TRY(cover_of_chosen()));
  if (!TRY(compile(found.covers[0]))) return internal_error("a kernel does not compile");
  found.candidates = seen_;
  return found;
}

// Candidates that were merged (cover_variations.h) are found by no rule.
Status LightSearch::adopt_boundaries(const PlanRow& plan) {
  std::map<std::string, const CandidatePartition*> known;
  std::map<std::string, PartitionSpecPtr> specs;
  for (const CandidatePartition& candidate : candidates_) {
    known.emplace(key_of(candidate), &candidate);
    specs.emplace(candidate.spec->target.to_string(), candidate.spec);
  }
  std::vector<CandidatePartition> kernels;
  for (const auto& [nodes, target, variant] : plan.kernels) {
    IndexSet inside;
    for (size_t node : nodes) {
      if (node >= graph_.size() || graph_.node(node).expr->kind() == ExprKind::kConstant ||
          graph_.node(node).expr->kind() == ExprKind::kVar)
        return internal_error("a plan of another graph");
      inside.insert(node);
    }
    if (inside.empty()) return internal_error("a plan with a kernel of nothing");
    const auto spec = specs.find(target);
    if (spec == specs.end()) return internal_error("no candidates of {}", target);
    CandidatePartition kernel{"merged", SubGraph::of(graph_, inside), spec->second};
    const auto found = known.find(key_of(kernel));
    if (found != known.end()) {
      kernel = *found->second;
    } else if (!is_valid(kernel)) {
      return internal_error("a plan with a kernel that is none of this graph");
    }
    required_[key_of(kernel)] = variant;
    kernels.push_back(std::move(kernel));
  }
  TRY(expect(kernels));
  for (const CandidatePartition& kernel : kernels) chosen_.insert(TRY(look_at(kernel)));
  return {};
}

// What is known of them is fetched at once.
Status LightSearch::expect(const std::vector<CandidatePartition>& kernels) {
  if (!costs_.store().fetches()) return {};
  std::vector<CostKey> keys;
  for (const CandidatePartition& kernel : kernels)
    if (!kernel.spec->is_host)
      keys.push_back({canonical_text(TRY(inline_calls(kernel.sub_graph.extract(graph_)))),
                      kernel.spec->target});
  costs_.store().expect(keys);
  return {};
}

void LightSearch::refuse(const std::string& kernel, const std::string& reason) {
  refused_[kernel] = reason;
  for (CostedCandidate& entry : seen_) {
    auto costs = std::make_shared<TargetCosts>(*entry.costs);
    for (MeasuredVariant& row : costs->variants)
      if (kernel_text(entry.partition, row.variant) == kernel) row.cost = Invalid{reason};
    entry.costs = std::move(costs);
  }
}

// Those of targets that may meet the leader, and one another.
std::vector<CandidatePartition> LightSearch::usable() const {
  std::vector<CandidatePartition> candidates = candidates_;
  const std::set<Target> leading =
      leader_ != nullptr ? std::set{leader_->target} : std::set<Target>();
  if (const std::vector<size_t>* set = targets_.set_with(leading))
    std::erase_if(candidates, [&](const CandidatePartition& candidate) {
      return !targets_.is_in(*set, candidate.spec->target);
    });
  return candidates;
}

// The largest candidates that fit together and are not known to fail. Nearly all turn out right
// when they are tried; where one does not, smaller ones take its place.
Status LightSearch::choose_boundaries() {
  std::set<size_t> failed;  // though something of it remains untried, whatever was asked
  const auto may_work = [&](const CandidatePartition& candidate) {
    const auto known = position_.find(key_of(candidate));
    return known == position_.end() ||
           (seen_[known->second].works() && !failed.contains(known->second));
  };
  for (bool all_usable = false; !all_usable;) {
    std::vector<CandidatePartition> candidates = usable();
    candidates.insert(candidates.end(), halves_.begin(), halves_.end());
    const std::vector<CandidatePartition> chosen =
        partition_lightly(graph_, std::move(candidates), may_work,
                          [&](const PartitionSpec& spec) { return rank_of(spec); });
    TRY(try_beside_each_other(chosen));
    chosen_.clear();
    for (const CandidatePartition& candidate : chosen) chosen_.insert(TRY(look_at(candidate)));
    all_usable = true;
    for (size_t position : chosen_)
      if (!has_usable(seen_[position])) {
        if (failed.insert(position).second) add_halves(seen_[position].partition);
        all_usable = false;
      }
  }
  return {};
}

// Of a region that is larger than rules would make it of parts: what does not compile, or computes
// wrong, is mostly a small part of it, and rounding errors of long chains are less in each half.
void LightSearch::add_halves(const CandidatePartition& region) {
  constexpr size_t kLeast = 64;
  const std::vector<size_t> nodes = region.sub_graph.inside().elements();
  if (nodes.size() < kLeast ||
      !find_backend(region.spec->target.kind)->traits().prefers_maximal_regions)
    return;
  IndexSet parts[2];
  for (size_t i = 0; i < nodes.size(); ++i) parts[2 * i >= nodes.size()].insert(nodes[i]);
  for (const IndexSet& part : parts) {
    CandidatePartition half{"half of a region", SubGraph::of(graph_, part), region.spec};
    if (position_.count(key_of(half)) == 0 && is_valid(half)) halves_.push_back(std::move(half));
  }
}

// Of a kernel that no rule found, as far as others depend on it.
bool LightSearch::is_valid(const CandidatePartition& kernel) const {
  return kernel.sub_graph.is_valid(graph_, {.max_exits = 0, .allow_taps = true}) &&
         graph_.stated_targets().allow(kernel.spec->target, kernel.sub_graph.inside());
}

Result<Outlook> LightSearch::outlook() const {
  const std::vector<CandidatePartition> kernels = partition_lightly(
      graph_, usable(), nullptr, [&](const PartitionSpec& spec) { return rank_of(spec); });
  Outlook outlook{.kernels = kernels.size()};
  std::set<std::string> slow;
  for (const CandidatePartition& kernel : kernels)
    if (!kernel.spec->is_host && !compiles_fast(*kernel.spec))
      slow.insert(canonical_text(TRY(inline_calls(kernel.sub_graph.extract(graph_)))));
  outlook.slow_to_compile = slow.size();
  return outlook;
}

const std::string& LightSearch::required_variant(const CandidatePartition& candidate) const {
  const auto found = required_.find(key_of(candidate));
  return found != required_.end() ? found->second : graph_.stated_kernels().variant(candidate);
}

const Variant* LightSearch::wanted_variant(const CandidatePartition& candidate) const {
  const auto found = wanted_.find(key_of(candidate));
  return found != wanted_.end() ? &found->second : nullptr;
}

Status LightSearch::try_beside_each_other(const std::vector<CandidatePartition>& candidates) {
  std::vector<MeasuredCosts::Trial> trials;
  for (const CandidatePartition& candidate : candidates) {
    if (candidate.spec->is_host || position_.count(key_of(candidate)) != 0) continue;
    trials.push_back(
        {TRY(inline_calls(candidate.sub_graph.extract(graph_))), candidate.spec->target});
    if (const Variant* wanted = wanted_variant(candidate)) trials.back().wanted = *wanted;
  }
  costs_.try_ahead(trials, [&](size_t done) {
    if (progress_ != nullptr) progress_->update(kPhase, done, trials.size(), 0, 0);
  });
  return {};
}

// What is known of a candidate after a trial where nothing was.
Result<size_t> LightSearch::look_at(const CandidatePartition& candidate) {
  auto [it, inserted] = position_.try_emplace(key_of(candidate), seen_.size());
  const size_t position = it->second;
  if (inserted) {
    seen_.push_back({candidate, TRY(inline_calls(candidate.sub_graph.extract(graph_))), nullptr});
    position_of_[seen_.back().function.get()] = position;
    if (seen_[position].is_host()) return TRY(trust_host(seen_[position])), position;
    TRY(try_candidate(position, wanted_variant(candidate)));
  }
  // The one that was tried may have been refused since, or left out on demand, or another is
  // stated.
  const CostedCandidate& entry = seen_[position];
  for (size_t v = 0; v < entry.costs->variants.size() && !has_usable(entry); ++v)
    if (is_untried(entry.costs->variants[v])) {
      Variant variant = entry.costs->variants[v].variant;
      TRY(try_candidate(position, &variant));
    }
  if (const std::optional<Variant> found = TRY(unlisted_stated(entry)))
    TRY(try_candidate(position, &*found));
  return position;
}

// The variant that is stated, where the target does not list it: a schedule search found it.
Result<std::optional<Variant>> LightSearch::unlisted_stated(const CostedCandidate& entry) const {
  const std::string& stated = required_variant(entry.partition);
  const auto is_stated = [&](const Variant& variant) { return variant.to_string() == stated; };
  if (stated.empty() ||
      std::any_of(entry.costs->variants.begin(), entry.costs->variants.end(),
                  [&](const MeasuredVariant& row) { return is_stated(row.variant); }))
    return std::optional<Variant>();
  const Target& target = target_of(entry);
  const ScheduleSpace space =
      TRY(offered_schedules(*find_backend(target.kind), entry.function, target, compile_));
  if (space.empty()) return std::optional<Variant>();
  std::optional<Variant> found = space.stated(stated);
  return found && is_stated(*found) ? found : std::nullopt;
}

// What the reference computes is right.
Status LightSearch::trust_host(CostedCandidate& entry) const {
  const Target& target = target_of(entry);
  TargetCosts costs;
  costs.target = target.to_string();
  for (Variant& variant :
       TRY(offered_variants(*find_backend(target.kind), entry.function, target, compile_)))
    costs.variants.push_back({std::move(variant), Unknown{}, true, true});
  entry.costs = std::make_shared<const TargetCosts>(std::move(costs));
  return {};
}

Status LightSearch::try_candidate(size_t position, const Variant* wanted) {
  CostedCandidate& entry = seen_[position];
  TargetCosts costs = TRY(costs_.tried_function(entry.function, target_of(entry), wanted));
  leave_out(entry.function, costs, demands_);
  const std::string& stated = required_variant(entry.partition);
  for (MeasuredVariant& row : costs.variants) {
    if (!stated.empty() && stated != row.variant.to_string())
      row.cost = Invalid{"the module states the variant " + stated};
    if (auto it = refused_.find(kernel_text(entry.partition, row.variant)); it != refused_.end())
      row.cost = Invalid{it->second};
  }
  entry.costs = std::make_shared<const TargetCosts>(std::move(costs));
  return {};
}

// Variants and layouts for the chosen candidates.
Result<NamedCover> LightSearch::cover_of_chosen() {
  CoverProblem problem(graph_, seen_, *this);
  const auto is_chosen = [&](size_t candidate, size_t) { return chosen_.contains(candidate); };
  SearchOptions options;
  options.top_k = 1;
  const SearchResult found = TRY(problem.settle(
      [&] { return search_covers(restricted(problem.problem(), is_chosen), options); }));
  seen_ = problem.candidates();  // whose variants the cover numbers
  NamedCover cover =
      named_cover(problem, leader_ == nullptr ? "light" : leader_->target.to_string() + " first",
                  found.covers.at(0));
  cover.origin = leader_ == nullptr ? "light" : kFirstAnswer;
  if (!is_measured(cover)) forget_seconds(cover);
  return cover;
}

bool LightSearch::is_measured(const NamedCover& cover) {
  const auto is_known = [&](const ChosenConversion& c) {
    const TensorType type = graph_.node(c.tensor.node).expr->type().leaves().at(c.tensor.leaf);
    const auto known = known_conversion(type, c.from, c.to);
    return known && measured(known->cost) != nullptr;
  };
  return std::all_of(
             cover.kernels.begin(), cover.kernels.end(),
             [&](const Cover::Kernel& k) { return measured(row_of(k, seen_).cost) != nullptr; }) &&
         std::all_of(cover.conversions.begin(), cover.conversions.end(), is_known);
}

// With the model's own constants, which trials do not have. A kernel that does not compile is
// refused.
Result<bool> LightSearch::compile(const NamedCover& cover) {
  kernels_.clear();
  for (const Cover::Kernel& kernel : cover.kernels) {
    const CostedCandidate& entry = seen_[kernel.candidate];
    Result<std::shared_ptr<Kernel>> compiled =
        compile_kernel_(entry.function, entry.partition, row_of(kernel, seen_).variant);
    if (compiled) {
      kernels_.push_back(std::move(compiled).value());
      continue;
    }
    if (entry.is_host()) return std::move(compiled).status();
    refuse(kernel_text(entry.partition, row_of(kernel, seen_).variant),
           compiled.status().to_string());
    return false;
  }
  return true;
}

Result<std::vector<TargetCosts>> LightSearch::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  std::vector<TargetCosts> answers;
  for (const KernelQuestion& question : questions) {
    const size_t position = position_of_.at(question.function.get());
    TRY(try_candidate(position, &question.used));
    answers.push_back(*seen_[position].costs);
  }
  return answers;
}

Result<ConversionRow> LightSearch::conversion_cost(const TensorType& type, const Encoding& from,
                                                   const Encoding& to) {
  return costs_.tried_conversion(type, from, to);
}

std::optional<ConversionRow> LightSearch::known_conversion(const TensorType& type,
                                                           const Encoding& from,
                                                           const Encoding& to) {
  return costs_.known_or_tried_conversion(type, from, to);
}

double LightSearch::kernel_estimate(const Function& function, const TargetCosts& costs,
                                    size_t variant) const {
  std::set<std::string> algorithms;
  for (size_t v = 0; v <= variant; ++v)
    if (!std::holds_alternative<Invalid>(costs.variants[v].cost))
      algorithms.insert(costs.variants[v].variant.name);
  return analytic_seconds(function) *
         (1 + kPerAlgorithm * static_cast<double>(algorithms.size() - 1) +
          kPerVariant * static_cast<double>(variant));
}

double LightSearch::conversion_estimate(const TensorType& type, const Encoding&,
                                        const Encoding&) const {
  return analytic_seconds(0, 2 * static_cast<double>(type.bytes()));
}

// One line for each kind of kernel that the host runs because its toolchain failed at it.
void LightSearch::warn_of_fallbacks(const NamedCover& cover) const {
  std::set<std::string> said;
  auto say = [&](const CostedCandidate& candidate, const std::string& reason) {
    std::string text = fmt::format("{}: {} cannot run it ({}); the host does",
                                   candidate.partition.sub_graph.ops_label(graph_),
                                   candidate.costs->target, reason);
    if (said.insert(text).second) log::warn("{}", text);
  };
  for (const Cover::Kernel& kernel : cover.kernels) {
    if (!seen_[kernel.candidate].is_host()) continue;
    const IndexSet& nodes = seen_[kernel.candidate].partition.sub_graph.inside();
    for (const CostedCandidate& other : seen_) {
      if (other.is_host() || !(other.partition.sub_graph.inside() == nodes)) continue;
      if (!other.costs->refusal.empty()) say(other, other.costs->refusal);
      for (const MeasuredVariant& row : other.costs->variants)
        if (const auto* invalid = std::get_if<Invalid>(&row.cost))
          say(other, row.variant.name + ": " + invalid->reason);
    }
  }
}

}  // namespace collage
