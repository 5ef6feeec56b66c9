#include "choose/light_cover.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/offer.h"
#include "base/log.h"
#include "choose/cover_problem.h"
#include "ir/visitor.h"
#include "partition/lightweight.h"
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

// Estimates served to choose; they are no prediction.
void forget_seconds(NamedCover& cover) {
  cover.predicted_seconds = cover.plain_seconds = cover.overlap_seconds = 0;
  for (CoverKernel& kernel : cover.kernels) kernel.seconds = 0;
  for (ChosenConversion& conversion : cover.conversions) conversion.seconds = 0;
}

class LightSearch : private CostEstimator {
 public:
  LightSearch(const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
              MeasuredCosts& costs, const LightOptions& options, Progress* progress)
      : graph_(graph),
        candidates_(std::move(candidates)),
        costs_(costs),
        stated_(graph),
        options_(options),
        progress_(progress) {}

  Result<LightCover> run() {
    TRY(try_first_choice());
    for (bool complete = false; !complete;) {
      TRY(choose_boundaries());
      complete = TRY(choose_variants());
    }
    if (progress_ != nullptr) progress_->finish(kPhase);
    warn_of_fallbacks();
    result_.candidates = std::move(seen_);
    return std::move(result_);
  }

 private:
  static constexpr const char* kPhase = "trying kernels";

  static const Target& target_of(const CostedCandidate& candidate) {
    return candidate.partition.spec->target;
  }

  // What is chosen where every kernel turns out right, which nearly all do: beside each other.
  Status try_first_choice() {
    std::vector<MeasuredCosts::Trial> trials;
    for (const CandidatePartition& candidate : partition_lightly(graph_, candidates_))
      if (!candidate.spec->is_host)
        trials.push_back(
            {TRY(inline_calls(candidate.sub_graph.extract(graph_))), candidate.spec->target});
    costs_.try_ahead(trials, [&](size_t done) {
      if (progress_ != nullptr) progress_->update(kPhase, done, trials.size(), 0, 0);
    });
    return {};
  }

  Status choose_boundaries() {
    size_t operators = 0, taken = 0, refused = 0;
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      operators += node_role(graph_, i) == NodeRole::kKernel;
    Status failure;
    std::vector<CandidatePartition> chosen =
        partition_lightly(graph_, candidates_, [&](const CandidatePartition& candidate) {
          if (!failure.ok()) return false;
          Result<size_t> position = look_at(candidate);
          if (!position) failure = position.status();
          bool usable = position && has_usable(seen_[*position]);
          if (usable)
            candidate.sub_graph.inside().for_each(
                [&](PostDfsIndex i) { taken += node_role(graph_, i) == NodeRole::kKernel; });
          refused += !usable;
          if (progress_ != nullptr) progress_->update(kPhase, taken, operators, 0, refused);
          return usable;
        });
    TRY(failure);
    chosen_.clear();
    for (const CandidatePartition& candidate : chosen)
      chosen_.push_back(position_.at(key_of(candidate)));
    return {};
  }

  static std::string key_of(const CandidatePartition& candidate) {
    return candidate.spec->name + " " + candidate.sub_graph.inside().to_string();
  }

  static bool has_usable(const CostedCandidate& candidate) {
    return std::any_of(candidate.costs->variants.begin(), candidate.costs->variants.end(),
                       is_usable);
  }

  // What is known of a candidate after a trial where nothing was.
  Result<size_t> look_at(const CandidatePartition& candidate) {
    auto [it, inserted] = position_.try_emplace(key_of(candidate), seen_.size());
    const size_t position = it->second;
    if (inserted) {
      seen_.push_back({candidate, TRY(inline_calls(candidate.sub_graph.extract(graph_))), nullptr});
      position_of_[seen_.back().function.get()] = position;
      if (seen_[position].is_host()) return TRY(trust_host(seen_[position])), position;
      TRY(try_candidate(position, nullptr));
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
  Result<std::optional<Variant>> unlisted_stated(const CostedCandidate& entry) const {
    const std::string& stated = stated_.variant(entry.partition);
    const auto is_stated = [&](const Variant& variant) { return variant.to_string() == stated; };
    if (stated.empty() ||
        std::any_of(entry.costs->variants.begin(), entry.costs->variants.end(),
                    [&](const MeasuredVariant& row) { return is_stated(row.variant); }))
      return std::optional<Variant>();
    const Target& target = target_of(entry);
    const ScheduleSpace space =
        TRY(find_backend(target.kind)->schedule_space(entry.function, target, options_.compile));
    if (space.empty()) return std::optional<Variant>();
    std::optional<Variant> found = space.stated(stated);
    return found && is_stated(*found) ? found : std::nullopt;
  }

  // What the reference computes is right.
  Status trust_host(CostedCandidate& entry) {
    const Target& target = target_of(entry);
    TargetCosts costs;
    costs.target = target.to_string();
    for (Variant& variant : TRY(offered_variants(*find_backend(target.kind), entry.function, target,
                                                 options_.compile)))
      costs.variants.push_back({std::move(variant), Unknown{}, true, true});
    entry.costs = std::make_shared<const TargetCosts>(std::move(costs));
    return {};
  }

  Status try_candidate(size_t position, const Variant* wanted) {
    CostedCandidate& entry = seen_[position];
    TargetCosts costs = TRY(costs_.tried_function(entry.function, target_of(entry), wanted));
    leave_out(entry.function, costs, options_.demands);
    const std::string& stated = stated_.variant(entry.partition);
    for (MeasuredVariant& row : costs.variants) {
      if (!stated.empty() && stated != row.variant.to_string())
        row.cost = Invalid{"the module states the variant " + stated};
      if (auto it = refused_.find({position, row.variant.to_string()}); it != refused_.end())
        row.cost = Invalid{it->second};
      if (auto it = options_.refused.find(kernel_text(entry.partition, row.variant));
          it != options_.refused.end())
        row.cost = Invalid{it->second};
    }
    entry.costs = std::make_shared<const TargetCosts>(std::move(costs));
    return {};
  }

  // Variants and layouts for the chosen candidates; false when a kernel that was thought usable is
  // not, so that boundaries must be chosen again.
  Result<bool> choose_variants() {
    std::vector<CostedCandidate> chosen;
    for (size_t position : chosen_) chosen.push_back(seen_[position]);
    CoverProblem problem(graph_, std::move(chosen), *this);
    SearchOptions options;
    options.top_k = 1;
    const Result<SearchResult> found =
        problem.settle([&] { return search_covers(problem.problem(), options); });
    if (!found) {
      const bool all_usable = std::all_of(chosen_.begin(), chosen_.end(), [&](size_t position) {
        return has_usable(seen_[position]);
      });
      if (all_usable) return found.status();
      return false;
    }
    result_.cover = named_cover(problem, "light", false, found->covers.at(0));
    bool measured_all = true;
    for (CoverKernel& kernel : result_.cover.kernels) {
      kernel.candidate = chosen_[kernel.candidate];
      measured_all = measured_all && measured(kernel.row().cost) != nullptr;
    }
    for (const ChosenConversion& c : result_.cover.conversions) {
      const TensorType type = graph_.node(c.tensor.node).expr->type().leaves().at(c.tensor.leaf);
      const auto known = known_conversion(type, c.from, c.to);
      measured_all = measured_all && known && measured(known->cost) != nullptr;
    }
    if (!measured_all) forget_seconds(result_.cover);
    return compile_chosen();
  }

  // As an estimator: what is known, else analytic estimates, and trials for what a cover uses.
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override {
    std::vector<TargetCosts> answers;
    for (const KernelQuestion& question : questions) {
      const size_t position = position_of_.at(question.function.get());
      TRY(try_candidate(position, &question.used));
      answers.push_back(*seen_[position].costs);
    }
    return answers;
  }
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override {
    return costs_.tried_conversion(type, from, to);
  }
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override {
    return costs_.known_or_tried_conversion(type, from, to);
  }
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override {
    std::set<std::string> algorithms;
    for (size_t v = 0; v <= variant; ++v)
      if (!std::holds_alternative<Invalid>(costs.variants[v].cost))
        algorithms.insert(costs.variants[v].variant.name);
    return analytic_seconds(function) *
           (1 + kPerAlgorithm * static_cast<double>(algorithms.size() - 1) +
            kPerVariant * static_cast<double>(variant));
  }
  double conversion_estimate(const TensorType& type, const Encoding&,
                             const Encoding&) const override {
    return analytic_seconds(0, 2 * static_cast<double>(type.bytes()));
  }

  // With the model's own constants, which trials do not have.
  Result<bool> compile_chosen() {
    result_.kernels.clear();
    for (const CoverKernel& kernel : result_.cover.kernels) {
      CostedCandidate& entry = seen_[kernel.candidate];
      Result<std::shared_ptr<Kernel>> compiled = options_.compile_kernel(
          entry.function, kernel_choice(entry.partition, kernel.row().variant));
      if (compiled) {
        result_.kernels.push_back(std::move(compiled).value());
      } else if (entry.is_host()) {
        return std::move(compiled).status();
      } else {
        refused_[{kernel.candidate, kernel.row().variant.to_string()}] =
            compiled.status().to_string();
        TRY(try_candidate(kernel.candidate, nullptr));
        return false;
      }
    }
    return true;
  }

  // One line for each kind of kernel that the host runs because its toolchain failed at it.
  void warn_of_fallbacks() const {
    std::set<std::string> said;
    auto say = [&](const CostedCandidate& candidate, const std::string& reason) {
      std::string text = fmt::format("{}: {} cannot run it ({}); the host does",
                                     candidate.partition.sub_graph.ops_label(graph_),
                                     candidate.costs->target, reason);
      if (said.insert(text).second) log::warn("{}", text);
    };
    for (const CoverKernel& kernel : result_.cover.kernels) {
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

  const DataflowGraph& graph_;
  std::vector<CandidatePartition> candidates_;
  MeasuredCosts& costs_;
  const StatedKernels stated_;
  const LightOptions& options_;
  Progress* progress_;
  std::vector<CostedCandidate> seen_;
  std::map<std::string, size_t> position_;                         // in it
  std::map<std::pair<size_t, std::string>, std::string> refused_;  // in this process: variants, why
  std::map<const FunctionNode*, size_t> position_of_;              // likewise
  std::vector<size_t> chosen_;                                     // of those seen: a cover
  LightCover result_;
};

}  // namespace

bool is_determined(const std::vector<PartitionSpecPtr>& specs) {
  return std::count_if(specs.begin(), specs.end(),
                       [](const PartitionSpecPtr& spec) { return !spec->is_host; }) <= 1;
}

Result<LightCover> find_light_cover(const DataflowGraph& graph,
                                    std::vector<CandidatePartition> candidates,
                                    MeasuredCosts& costs, const LightOptions& options,
                                    Progress* progress) {
  return LightSearch(graph, std::move(candidates), costs, options, progress).run();
}

}  // namespace collage
