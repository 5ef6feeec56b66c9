#include "choose/schedule_tuning.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "backend/offer.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cost/schedule_search.h"
#include "ir/text_printer.h"

namespace collage {

namespace {

constexpr uint64_t kTuningSeed = 1;
constexpr size_t kBatch = 8;  // timed together, beside the fastest so far
constexpr size_t kFinalists = 3;
constexpr double kFaster = 0.98;     // what is found must take no more of the fastest known
constexpr double kLeastPart = 0.01;  // of a cover, that is worth a search
constexpr double kMostBehind = 2;    // times as long as the kernel it would replace

double seconds_of(const MeasuredVariant& row) {
  const Measured* m = measured(row.cost);
  return m != nullptr ? m->seconds() : std::numeric_limits<double>::infinity();
}

// Times variants beside one that is known, since the machine is not equally fast at all times.
// Costs are as parts of that one's.
struct Timed {
  MeasuredVariant row;
  double part = std::numeric_limits<double>::infinity();
};
Result<std::vector<Timed>> timed_beside(const Variant& known, std::vector<Variant> variants,
                                        const Function& function, const Target& target,
                                        MeasuredCosts& costs, Effort effort) {
  variants.insert(variants.begin(), known);
  const std::optional<TargetCosts> answer =
      TRY(costs.time_variants(function, target, variants, effort));
  std::vector<Timed> timed;
  if (!answer || answer->variants.size() != variants.size()) return timed;
  const double unit = seconds_of(answer->variants[0]);
  for (size_t i = 1; i < answer->variants.size(); ++i) {
    timed.push_back({answer->variants[i]});
    if (measured(answer->variants[0].cost) != nullptr)
      timed.back().part = seconds_of(answer->variants[i]) / unit;
  }
  return timed;
}

}  // namespace

size_t most_schedules(Effort effort) { return effort == Effort::kMax ? 64 : 0; }

namespace {

// The fastest schedule of the space found where it is faster than all that are known of the
// candidate in the same encodings, which were measured before.
Result<std::optional<MeasuredVariant>> faster_schedule(const CostedCandidate& candidate,
                                                       ScheduleSpace space, MeasuredCosts& costs,
                                                       Effort effort) {
  const Function& function = candidate.function;
  const Target& target = candidate.partition.spec->target;
  const TargetCosts& known = *candidate.costs;
  constexpr std::optional<MeasuredVariant> kNone;
  const Variant like = space.variant(ScheduleSpace::Choice(space.options.size(), 0));
  const MeasuredVariant* fastest = fastest_variant(known, [&](const MeasuredVariant& row) {
    return !row.variant.lowered() && row.variant.inputs == like.inputs &&
           row.variant.outputs == like.outputs;
  });
  if (fastest == nullptr) return kNone;
  ScheduleSearch search(std::move(space), kTuningSeed);
  std::vector<Timed> best;
  size_t left = most_schedules(effort);
  while (left > 0 && !interrupted()) {
    std::vector<Variant> batch = search.propose(std::min(kBatch, left));
    if (batch.empty()) break;
    left -= batch.size();
    const std::vector<Timed> timed = TRY(
        timed_beside(fastest->variant, std::move(batch), function, target, costs, Effort::kFast));
    for (const Timed& one : timed) {
      log::debug("{}: {:.3f} of {}", one.row.variant.name, one.part, fastest->variant.name);
      search.learn(one.row.variant, one.part);
      if (one.part < 1) best.push_back(one);
    }
  }
  // Variants that the target lists are measured already.
  std::erase_if(best, [&](const Timed& one) {
    return std::any_of(known.variants.begin(), known.variants.end(),
                       [&](const auto& row) { return row.variant == one.row.variant; });
  });
  std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  if (best.size() > kFinalists) best.resize(kFinalists);
  if (best.empty()) return kNone;
  // The luckiest of many figures is too low: the last word has a longer measurement.
  std::vector<Variant> finalists;
  for (const Timed& one : best) finalists.push_back(one.row.variant);
  best = TRY(timed_beside(fastest->variant, finalists, function, target, costs, effort));
  const auto winner = std::min_element(
      best.begin(), best.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  if (winner == best.end() || winner->part > kFaster) return kNone;
  return std::optional(winner->row);
}

// What to search for: of candidates that share their costs one, with the most that one of them
// takes in a cover.
std::map<const TargetCosts*, std::pair<size_t, double>> worth_tuning(
    const std::vector<NamedCover>& covers, const std::vector<CostedCandidate>& candidates) {
  std::map<const TargetCosts*, std::pair<size_t, double>> worth;
  for (const NamedCover& cover : covers) {
    std::map<const TargetCosts*, std::pair<size_t, double>> own;
    for (const Cover::Kernel& kernel : cover.kernels) {
      const IndexSet& nodes = candidates[kernel.candidate].partition.sub_graph.inside();
      for (size_t c = 0; c < candidates.size(); ++c) {
        const CostedCandidate& candidate = candidates[c];
        if (candidate.is_host() || candidate.costs == nullptr ||
            candidate.partition.sub_graph.inside() != nodes)
          continue;
        const MeasuredVariant* fastest = fastest_variant(
            *candidate.costs, [](const auto& row) { return !row.variant.lowered(); });
        if (fastest == nullptr || seconds_of(*fastest) > kMostBehind * kernel.seconds) continue;
        own.try_emplace(candidate.costs.get(), c, 0).first->second.second += kernel.seconds;
      }
    }
    for (const auto& [key, use] : own) {
      if (use.second < kLeastPart * cover.plain_seconds) continue;
      auto& known = worth.try_emplace(key, use).first->second;
      known.second = std::max(known.second, use.second);
    }
  }
  return worth;
}

}  // namespace

Result<bool> tune_schedules(const std::vector<NamedCover>& covers,
                            std::vector<CostedCandidate>& candidates, const CompileOptions& compile,
                            MeasuredCosts& costs, Effort effort, Progress* progress) {
  if (most_schedules(effort) == 0 || costs.is_frozen()) return false;
  struct Wanted {
    double seconds;
    size_t candidate;
    ScheduleSpace space;
  };
  std::vector<Wanted> wanted;
  for (const auto& [key, use] : worth_tuning(covers, candidates)) {
    const CostedCandidate& candidate = candidates[use.first];
    const Target& target = candidate.partition.spec->target;
    const Backend* backend = find_backend(target.kind);
    if (backend == nullptr ||
        costs.searched_schedules(canonical_text(candidate.function), target).has_value())
      continue;
    Result<ScheduleSpace> space = offered_schedules(*backend, candidate.function, target, compile);
    if (space.ok() && !space->empty()) wanted.push_back({use.second, use.first, std::move(*space)});
  }
  std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
    return std::tie(a.seconds, a.candidate) > std::tie(b.seconds, b.candidate);
  });
  std::map<const TargetCosts*, MeasuredVariant> faster;
  for (size_t i = 0; i < wanted.size() && !interrupted(); ++i) {
    if (progress != nullptr) progress->update("searching schedules", i, wanted.size(), 0, 0);
    const CostedCandidate& candidate = candidates[wanted[i].candidate];
    const Target& target = candidate.partition.spec->target;
    std::optional<MeasuredVariant> schedule =
        TRY(faster_schedule(candidate, std::move(wanted[i].space), costs, effort));
    if (interrupted()) break;
    TRY(costs.end_schedule_search(candidate.function, target, schedule));
    if (schedule) faster.emplace(candidate.costs.get(), std::move(*schedule));
  }
  if (progress != nullptr && !wanted.empty()) progress->finish("searching schedules");
  change_costs(
      candidates, candidates,
      [&](const CostedCandidate& candidate) { return faster.count(candidate.costs.get()) > 0; },
      [&](const CostedCandidate& candidate, TargetCosts& known) {
        known.variants.push_back(faster.at(candidate.costs.get()));
      });
  return !faster.empty();
}

}  // namespace collage
