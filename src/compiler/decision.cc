#include "compiler/decision.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/log.h"
#include "choose/culprits.h"
#include "choose/demanded_costs.h"
#include "choose/estimated_cover.h"
#include "choose/in_situ_ratio.h"
#include "choose/known_plan.h"
#include "choose/light_cover.h"
#include "choose/lowered_costs.h"
#include "choose/precision.h"
#include "choose/remeasure.h"
#include "choose/schedule_tuning.h"
#include "ir/text_printer.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

// Costs and covers, before the clock decides.
struct Searched {
  VariantDemands demands;
  CoverSearch found;
};

// Where nothing is measured, what was never measured is in no cover; but the host is not to compute
// what another could if its own cost is not known either.
Status check_known(const CoverSearch& found, CompileContext& context) {
  if (!context.costs.is_frozen()) return {};
  for (const Cover::Kernel& kernel : found.covers[0].kernels) {
    const CostedCandidate& used = found.candidates[kernel.candidate];
    if (!used.is_host() || used.has_cost()) continue;
    for (const CostedCandidate& other : found.candidates)
      if (!other.is_host() && other.works() && !other.has_cost() &&
          !tensor_program::is_local(other.function) &&  // nobody can measure it
          other.partition.sub_graph.inside().intersects(used.partition.sub_graph.inside()))
        return MeasuredCosts::frozen_miss(canonical_text(other.function),
                                          other.partition.spec->target);
  }
  return {};
}

SearchWishes wishes_of(const Candidates& candidates) {
  SearchWishes wishes;
  wishes.targets = &candidates;
  return wishes;
}

// What covers use is asked of the estimator on the way, in `asking` seconds. Where a fused kernel
// that stands for smaller ones turns out not to work, covers are searched for among these too.
Result<CoverSearch> covers_by(ModelCosts costs, const MeasuredCosts& estimator,
                              const VariantDemands& demands, const Candidates& candidates,
                              CompileContext& context, double& asking) {
  CoverSearch found;
  while (true) {
    DemandedCosts demanded(estimator, demands, costs.candidates, context.progress);
    found = TRY(find_covers(*candidates.graph, costs.candidates, demanded, wishes_of(candidates)));
    TRY(check_known(found, context));
    asking += demanded.seconds();
    costs.candidates = std::move(found.candidates);
    const size_t before = costs.candidates.size();
    costs =
        TRY(with_pruned(std::move(costs), candidates, demands, context.costs, context.progress));
    if (costs.candidates.size() == before) break;
  }
  static_cast<ModelCosts&>(found) = std::move(costs);
  DemandedCosts demanded(estimator, demands, found.candidates, context.progress);
  return with_variations(candidates, std::move(found), context.costs, demanded, demands);
}

// Measures what covers use. The covers are those that a compilation with frozen costs finds: which
// are the next best ones depends on the estimates of what no cover uses, too.
Result<Searched> searched_by(ModelCosts costs, const VariantDemands& demands,
                             const Candidates& candidates, CompileContext& context) {
  double asking = 0;
  CoverSearch found =
      TRY(covers_by(std::move(costs), context.costs, demands, candidates, context, asking));
  if (!context.costs.is_frozen() && context.options.cost_model == nullptr) {
    MeasuredCosts frozen(context.costs, Missing::kRefuse);
    const SearchCounts counts = found.counts;
    const double seconds = found.search_seconds;
    found = TRY(covers_by(std::move(found), frozen, demands, candidates, context, asking));
    found.counts += counts;
    found.search_seconds += seconds;
  }
  context.end_phase("search");
  context.phase_seconds["search"] -= asking;
  context.phase_seconds["costs"] += asking;
  context.phase_seconds["search only"] = found.search_seconds;
  TRY(context.dump("costs", static_cast<const ModelCosts&>(found)));
  TRY(context.dump("covers", found));
  return Searched{demands, std::move(found)};
}

// Whether covers by these costs rest on measurements alone.
Result<bool> all_is_known(const ModelCosts& costs, const Candidates& candidates,
                          CompileContext& context) {
  if (!costs.missing.ok()) return false;
  MeasuredCosts known(context.costs, Missing::kEstimate);
  const Result<CoverSearch> found =
      find_covers(*candidates.graph, costs.candidates, known, wishes_of(candidates));
  // What nobody measured is in no cover, a variant that is stated, say: there may be none.
  if (!found && found.status().code() == ErrorCode::kUnsupported) return false;
  TRY(found.status());
  return !known.missed();
}

// None with one toolchain, whose kernels are not measured, where costs are missing. From tuning,
// say, they may all be known.
Result<std::optional<Searched>> search_by_cost(const Candidates& candidates,
                                               CompileContext& context) {
  const VariantDemands demands = demands_of(context.options);
  // Without memory for its inputs no kernel could be tried: the model has some.
  if (!context.costs.is_frozen()) TRY(context.reference.timing_inputs());
  ModelCosts costs = TRY(find_costs(candidates, demands, context.costs, context.progress));
  if (context.options.cost_model != nullptr) {
    auto is_costed = [](const CostedCandidate& candidate) { return candidate.costs != nullptr; };
    change_costs(costs.candidates, costs.candidates, is_costed,
                 [&](const CostedCandidate& candidate, TargetCosts& known) {
                   context.costs.apply_given(candidate.function, known);
                 });
  }
  context.end_phase("costs");
  if (context.light && !TRY(all_is_known(costs, candidates, context)))
    return std::optional<Searched>();
  TRY(costs.missing);
  return std::optional(TRY(searched_by(std::move(costs), demands, candidates, context)));
}

int most_remeasurements(const CompileContext& context) {
  return context.options.effort == Effort::kFast ? 0 : kMostRemeasurements;
}

// The loops back: costs that decide are measured at other moments, then schedules are searched for,
// and covers found anew.
Result<std::optional<Searched>> search_and_remeasure(const Candidates& candidates,
                                                     CompileContext& context) {
  std::optional<Searched> by_cost = TRY(search_by_cost(candidates, context));
  if (!by_cost) return by_cost;
  Searched& searched = *by_cost;
  for (int round = 0; round < most_remeasurements(context); ++round) {
    const bool changed = TRY(remeasure(searched.found.covers, searched.found.candidates,
                                       context.costs, RoundingLimit::kDefault, context.progress));
    context.end_phase("costs");
    if (!changed) break;
    searched = TRY(searched_by(std::move(searched.found), searched.demands, candidates, context));
  }
  if (most_schedules(context.options.effort) == 0) return by_cost;
  const bool changed =
      TRY(tune_schedules(searched.found.covers, searched.found.candidates, context.compile,
                         context.costs, context.options.effort, context.progress));
  context.end_phase("schedules");
  if (changed)
    searched = TRY(searched_by(std::move(searched.found), searched.demands, candidates, context));
  return by_cost;
}

Result<CoverChoice> choose(const std::vector<NamedCover>& covers,
                           const std::vector<CostedCandidate>& candidates,
                           CompileContext& context) {
  context.gate.know(context.costs.store().usual());
  return choose_cover(covers, context.choosing_among(candidates));
}

bool has_relaxed(const CostedCandidate& candidate) {
  return candidate.costs != nullptr &&
         std::any_of(candidate.costs->variants.begin(), candidate.costs->variants.end(),
                     [](const MeasuredVariant& row) {
                       return row.variant.rounding.limit() == RoundingLimit::kDefault &&
                              measured(row.cost) != nullptr;
                     });
}

// Searches again, where no cover is right, without what is to blame; false: nothing is.
using SearchAgain = std::function<Result<bool>(const CoverChoice& choice, Searched& searched)>;

Result<Decision> choose_right(Searched searched, const SearchAgain& search_again,
                              CompileContext& context) {
  while (true) {
    CoverChoice choice = TRY(choose(searched.found.covers, searched.found.candidates, context));
    if (choice.index || !TRY(search_again(choice, searched)))
      return Decision{searched.demands, std::move(searched.found), TRY(require(std::move(choice)))};
  }
}

// Algorithms of larger rounding errors are to blame, where there are any.
Result<bool> search_strictly(const CoverChoice& choice, Searched& searched,
                             const Candidates& candidates, CompileContext& context) {
  if (searched.demands.strict_accuracy ||
      std::none_of(searched.found.candidates.begin(), searched.found.candidates.end(), has_relaxed))
    return false;
  log::warn("algorithms with larger rounding errors are left out: {}", choice.failure);
  searched.demands.strict_accuracy = true;
  leave_out(searched.found.candidates, searched.demands);
  searched = TRY(searched_by(std::move(searched.found), searched.demands, candidates, context));
  return true;
}

// Kernels of a cover that are to blame for `reason`, why it is wrong.
Result<std::vector<std::string>> blamed(const NamedCover& cover, const CoverSearch& found,
                                        const std::string& reason, CompileContext& context) {
  const std::optional<CoverCheck> check = context.checks.known(cover);
  std::vector<std::string> culprits = check ? check->culprits : std::vector<std::string>();
  if (culprits.empty()) {
    culprits = TRY(find_culprits(cover, found.candidates,
                                 TRY(context.lower_cover(cover, found.candidates)),
                                 context.reference, context.compile));
    context.checks.remember_culprits(cover, culprits);
  }
  if (culprits.empty()) return error(ErrorCode::kVerification, "{}", reason);
  return culprits;
}

LightContext light_context(const Candidates& candidates, CompileContext& context) {
  const auto compile = [&context](const Function& function, const CandidatePartition& partition,
                                  const Variant& variant) {
    return context.kernels.compile(function, partition, variant, context.compile);
  };
  return {candidates, context.costs,    demands_of(context.options), context.compile,
          compile,    context.progress, context.answers_first};
}

LightCovers light_covers(const Candidates& candidates, CompileContext& context) {
  std::vector<PartitionSpecPtr> leaders = {nullptr};
  if (context.answers_first) leaders = leaders_of(candidates);
  return {light_context(candidates, context), leaders};
}

Result<Decision> decide_lightly(const Candidates& candidates, CompileContext& context,
                                const std::optional<PlanRow>& known) {
  constexpr int kMostWrong = 16;
  Searched searched;
  searched.demands = demands_of(context.options);
  LightCovers light = light_covers(candidates, context);
  const auto find = [&]() -> Result<CoverSearch> {
    CoverSearch found = TRY(light.find());
    context.end_phase("search");
    // One alone has no rival to be timed beside.
    context.choosing.timing =
        context.light || found.covers.size() == 1 ? TimingEffort::kNone : TimingEffort::kQuick;
    return found;
  };
  int wrong = 0;
  const auto find_without_blamed = [&](const CoverChoice& choice, Searched& again) -> Result<bool> {
    if (choice.code == ErrorCode::kUnavailable || wrong++ == kMostWrong) return false;
    for (const NamedCover& cover : again.found.covers)
      for (const std::string& kernel : TRY(blamed(cover, again.found, choice.failure, context)))
        light.refuse(kernel, "with it the whole program is wrong");
    again.found = TRY(find());
    return true;
  };
  Result<CoverSearch> again = unsupported("no plan is known");
  if (known) again = light.find_again(*known);
  if (again) {
    context.choosing.timing = TimingEffort::kNone;
    searched.found = std::move(again).value();
    CoverChoice choice = TRY(choose(searched.found.covers, searched.found.candidates, context));
    if (choice.index) {
      const bool light = searched.found.covers[0].plain_seconds == 0;
      return Decision{searched.demands, std::move(searched.found), std::move(choice), light};
    }
  }
  searched.found = TRY(find());
  Decision decision = TRY(choose_right(std::move(searched), find_without_blamed, context));
  decision.light = true;
  return decision;
}

void allow_checking(CompileContext& context) {
  const bool in_haste = context.answers_first && *context.options.budget_seconds <= 0;
  const double least = in_haste ? 0.5 : 4, of_compiling = 0.25;
  context.reference.allow(std::max(least, of_compiling * context.whole.seconds()));
}

// By costs that are measured, or known.
Result<Decision> decide_by_costs(Searched searched, const Candidates& candidates,
                                 CompileContext& context) {
  return choose_right(
      std::move(searched),
      [&](const CoverChoice& choice, Searched& again) {
        return search_strictly(choice, again, candidates, context);
      },
      context);
}

// The cover with what its kernels and conversions cost, as far as there is time.
Result<CoverSearch> measured_first(const NamedCover& cover,
                                   const std::vector<CostedCandidate>& used,
                                   const Candidates& candidates, CompileContext& context) {
  std::vector<KernelQuestion> questions;
  for (const Cover::Kernel& kernel : cover.kernels)
    questions.push_back({used[kernel.candidate].function,
                         used[kernel.candidate].partition.spec->target,
                         row_of(kernel, used).variant});
  TRY(DemandedCosts(context.costs, demands_of(context.options), used, context.progress)
          .kernel_costs(questions));
  for (const ChosenConversion& change : cover.conversions)
    TRY(context.costs.conversion_cost(
        context.graph.node(change.tensor.node).expr->type().leaves().at(change.tensor.leaf),
        change.from, change.to));
  CoverSearch again = TRY(light_covers(candidates, context).find_again(plan_of(cover, used)));
  again.covers[0].name = cover.name;
  again.covers[0].origin = cover.origin;
  return again;
}

// What is measured in the time allowed decides beside the first answer's cover, whose kernels are
// measured first, so that there is always a cover of measured kernels.
Result<Decision> decide_in_time(const Decision& first, const Candidates& candidates,
                                CompileContext& context) {
  context.costs.measure_for(*context.options.budget_seconds);
  const Result<CoverSearch> rival =
      measured_first(first.cover(), first.found.candidates, candidates, context);
  context.tries = false;
  Result<std::optional<Searched>> by_cost = search_and_remeasure(candidates, context);
  context.tries = true;
  std::optional<Searched> searched = TRY(std::move(by_cost));
  if (context.is_stopped()) return error(ErrorCode::kUnavailable, "it was interrupted");
  const bool complete = !context.costs.was_over();
  CoverSearch& found = searched->found;
  if (!complete) {
    // What was not measured in time is in no cover but as the host's.
    found.exact = false;
    found.lower_bound_seconds = 0;
    std::erase_if(found.covers, [&](const NamedCover& cover) {
      return std::any_of(cover.kernels.begin(), cover.kernels.end(),
                         [&](const Cover::Kernel& kernel) {
                           return measured(row_of(kernel, found.candidates).cost) == nullptr;
                         });
    });
  }
  // It is no rival if a kernel of it failed when it was measured.
  if (rival) add_standing(*rival, found);
  context.choosing.timing = TimingEffort::kFull;
  Decision decision = TRY(decide_by_costs(std::move(*searched), candidates, context));
  decision.complete = complete;
  decision.light = decision.cover().plain_seconds == 0;
  return decision;
}

Result<Decision> decide_anew(const Candidates& candidates, const std::optional<PlanRow>& known,
                             CompileContext& context) {
  if (context.answers_first) {
    allow_checking(context);
    Result<Decision> first = decide_lightly(candidates, context, known);
    if (first) {
      first->complete = known && known->complete && first->cover().origin == kKnownPlan;
      if (first->complete || *context.options.budget_seconds <= 0 || context.is_stopped())
        return first;
      context.end_phase("first answer");
      Result<Decision> better = decide_in_time(*first, candidates, context);
      if (better) return better;
      log::info("the first answer stays: {}", better.status().message());
      return first;
    }
    if (first.status().code() == ErrorCode::kUnavailable) return first;
    log::info("no first answer: {}", first.status().message());
    context.tries = false;
    context.choosing.timing = TimingEffort::kFull;
  }
  Result<CoverSearch> standing = context.options.cost_model != nullptr
                                     ? unsupported("costs alone decide")
                                     : standing_cover(light_context(candidates, context), known);
  std::optional<Searched> by_cost = TRY(search_and_remeasure(candidates, context));
  allow_checking(context);
  if (!by_cost) return decide_lightly(candidates, context, {});
  if (standing && standing->covers[0].plain_seconds == 0)  // with what costs are known now
    standing = standing_cover(light_context(candidates, context),
                              plan_of(standing->covers[0], standing->candidates));
  if (standing) add_standing(*standing, by_cost->found);
  Decision decision = TRY(decide_by_costs(std::move(*by_cost), candidates, context));
  decision.complete = !context.costs.was_over();
  return decision;
}

}  // namespace

VariantDemands demands_of(const ProgramOptions& options) {
  return {options.strict_accuracy,
          options.weight_forms ? std::make_shared<WeightDemands>(options.weight_forms) : nullptr};
}

Result<std::optional<CoverSearch>> search(const Candidates& candidates, CompileContext& context) {
  std::optional<Searched> by_cost = TRY(search_by_cost(candidates, context));
  if (!by_cost) return std::optional<CoverSearch>();
  return std::optional(std::move(by_cost->found));
}

Result<Decision> decide(const Candidates& candidates, CompileContext& context) {
  const KnownPlan plan(candidates, context.options, context.choosing, *context.database);
  const std::optional<PlanRow> known = context.light ? std::nullopt : plan.find();
  Decision decision = TRY(decide_anew(candidates, known, context));
  // What is wrong on the user's inputs may be right for others.
  const bool is_of_inputs = !context.options.check_inputs.empty() && decision.light && known;
  if (!context.light && !context.options.frozen_costs && !context.is_stopped() && !is_of_inputs)
    plan.remember(decision.cover(), decision.found.candidates, decision.complete);
  return decision;
}

Result<Decision> lowered(Decision decision, const Candidates& candidates, CompileContext& context) {
  CoverSearch& found = decision.found;
  found.candidates =
      TRY(with_lowered_variants(context.graph, found.candidates, context.costs, context.progress));
  leave_out(found.candidates, decision.demands);
  context.end_phase("lowered costs");
  DemandedCosts demanded(context.costs, decision.demands, found.candidates, context.progress);
  const auto find = [&](const std::vector<CostedCandidate>& costed, double max_error,
                        WantedCovers wanted) {
    return find_covers(context.graph, costed, demanded, {wanted, max_error, &candidates});
  };
  decision.chosen = TRY(choose_within_budget(
      std::move(decision.chosen), found, find,
      [&](const NamedCover& cover, std::vector<CostedCandidate>& costed) -> Result<bool> {
        if (most_remeasurements(context) == 0) return false;
        return remeasure({cover}, costed, context.costs, RoundingLimit::kAny, context.progress);
      },
      context.choosing_among(found.candidates)));
  context.end_phase("lowered covers");
  return decision;
}

Status measure_in_situ(const Decision& decision, CompileContext& context) {
  const ChooseOptions& choosing = context.choosing;
  if (decision.light || context.options.frozen_costs || context.answers_first || interrupted() ||
      decision.cover().plain_seconds <= 0)
    return {};
  if (known_in_situ_ratio(*context.database, choosing.source_key, choosing.context)) return {};
  const std::span<const Tensor> inputs = TRY(context.reference.timing_inputs());
  Executor executor = TRY(Executor::create(decision.chosen.lowered.plan, context.compile.threads));
  if (context.progress != nullptr)
    context.progress->update("timing kernels in their place", 0, 1, 0, 0);
  const Status status =
      measure_in_situ_ratio(decision.cover(), executor, inputs,
                            {choosing.source_key, choosing.context, context.compile.threads,
                             context.cache, context.options.effort},
                            *context.database, context.gate);
  if (context.progress != nullptr) context.progress->finish("timing kernels in their place");
  if (!status.ok())
    log::warn("what its kernels take inside the model was not measured: {}", status.to_string());
  context.end_phase("in situ");
  return {};
}

}  // namespace collage
