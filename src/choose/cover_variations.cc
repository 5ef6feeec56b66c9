#include "choose/cover_variations.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "choose/light_cover.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "partition/lightweight.h"
#include "partition/merge.h"
#include "search/side_by_side.h"

namespace collage {

namespace {

using Wanted = Result<std::optional<FindCover>>;
Wanted wanted(FindCover search) { return std::optional<FindCover>(std::move(search)); }
Wanted nothing() { return std::optional<FindCover>(); }

// Bytes that a call gives, and of the constants that it reads.
double call_bytes(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr || call->op->is_view) return 0;
  double bytes = type_bytes(call->type());
  for (const Expr& arg : call->args)
    if (arg->kind() == ExprKind::kConstant) bytes += type_bytes(arg->type());
  return bytes;
}

// The part of the graph that a target could do, by that amount of each node.
template <typename Amount>
double reach_of(const VariationContext& context, const Target& target, Amount&& amount) {
  IndexSet reached;
  for (const CostedCandidate& candidate : context.problem.candidates())
    if (candidate.partition.spec->target == target && candidate.works())
      reached |= candidate.partition.sub_graph.inside();
  double own = 0, all = 0;
  for (const DataflowGraph::Node& node : context.graph.nodes()) {
    all += amount(node.expr);
    if (reached.contains(node.index)) own += amount(node.expr);
  }
  return all > 0 ? own / all : 1;
}

// Of the arithmetic. The host's costs for all the rest would be measured in vain.
bool does_nearly_all(const VariationContext& context, const Target& target) {
  return reach_of(context, target, [](const Expr& expr) { return call_flops(expr); }) >=
         kSingleBackendWork;
}

// Of the arithmetic, or of the bytes that calls make or read as constants, which is what a model
// bound by memory takes its time for.
bool does_most(const VariationContext& context, const Target& target) {
  return does_nearly_all(context, target) ||
         reach_of(context, target, call_bytes) >= kSingleBackendWork;
}

bool prefers_regions(const Target& target) {
  return find_backend(target.kind)->traits().prefers_maximal_regions;
}

SearchOptions one_cover() {
  SearchOptions options;
  options.top_k = 1;
  return options;
}

// The target's regions as large as it takes them, whatever they cost when measured alone: what it
// gains by having all of them shows only in whole runs.
SearchProblem in_regions(const SearchProblem& problem, const VariationContext& context,
                         const Target& target) {
  const std::set<size_t> inside = context.problem.inside_others(target);
  return restricted(problem, [&](size_t candidate, size_t) { return !inside.contains(candidate); });
}

// Has rows of its own: search/cover.h.
Wanted find_cheapest(VariationContext& context, const Target&) {
  return wanted([&](const SearchProblem& problem) {
    SearchOptions options;
    options.top_k = context.top_k;
    return search_covers(problem, options);
  });
}

// What may take less than any cover of the search where devices compute side by side.
Wanted find_side_by_side(VariationContext& context, const Target&) {
  return wanted([&](const SearchProblem& problem) -> Result<SearchResult> {
    return cover_side_by_side(problem, context.cheapest);
  });
}

Wanted find_single_backend(VariationContext& context, const Target& target) {
  if (!does_nearly_all(context, target)) return nothing();
  return wanted([&](const SearchProblem& problem) {
    return single_backend_cover(problem, target, context.host, one_cover());
  });
}

Wanted find_single_in_regions(VariationContext& context, const Target& target) {
  if (!prefers_regions(target) || !does_nearly_all(context, target)) return nothing();
  return wanted([&](const SearchProblem& problem) {
    return single_backend_cover(in_regions(problem, context, target), target, context.host,
                                one_cover());
  });
}

// Kernels of one backend hand tensors over in the same way, which their costs do not show.
Wanted find_mostly_one(VariationContext& context, const Target& target) {
  if (!does_most(context, target)) return nothing();
  return wanted([&](const SearchProblem& problem) {
    return mostly_one_backend_cover(problem, target, one_cover());
  });
}

Wanted find_mostly_in_regions(VariationContext& context, const Target& target) {
  if (!prefers_regions(target) || !does_most(context, target)) return nothing();
  return wanted([&](const SearchProblem& problem) {
    return mostly_one_backend_cover(in_regions(problem, context, target), target, one_cover());
  });
}

// What the toolchain's own partition would be (partition_for): its largest candidates, the rest by
// others. A plan is never slower than that.
Wanted find_own_partition(VariationContext& context, const Target& target) {
  for (const CostedCandidate& candidate : context.problem.candidates())
    if (candidate.partition.spec->target == target && moves_nothing(*candidate.partition.spec))
      return nothing();
  return wanted([&, target](const SearchProblem& problem) {
    std::vector<CandidatePartition> usable;
    std::map<std::pair<Target, std::string>, size_t> number;
    const auto key = [](const CandidatePartition& candidate) {
      return std::pair(candidate.spec->target, candidate.sub_graph.inside().to_string());
    };
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const CandidateCosts& costs = problem.candidates[c];
      if (costs.is_usable() && number.emplace(key(*costs.candidate), c).second)
        usable.push_back(*costs.candidate);
    }
    std::set<size_t> chosen;
    const auto rank = [&](const PartitionSpec& spec) { return light_rank(spec, &target); };
    for (const CandidatePartition& kernel :
         partition_lightly(context.graph, std::move(usable), nullptr, rank))
      chosen.insert(number.at(key(kernel)));
    return search_covers(
        restricted(problem, [&](size_t candidate, size_t) { return chosen.contains(candidate); }),
        one_cover());
  });
}

// A candidate of those nodes and that target, which may be a new one; none where nobody may be
// asked what it costs.
Result<std::optional<size_t>> whole_of(const CandidatePartition& kernel,
                                       VariationContext& context) {
  const std::vector<CostedCandidate>& candidates = context.problem.candidates();
  const auto known =
      std::find_if(candidates.begin(), candidates.end(), [&](const CostedCandidate& other) {
        return other.partition.spec == kernel.spec &&
               other.partition.sub_graph.inside() == kernel.sub_graph.inside();
      });
  size_t number = static_cast<size_t>(known - candidates.begin());
  if (known == candidates.end()) {
    CostedCandidate whole{kernel, TRY(inline_calls(kernel.sub_graph.extract(context.graph))),
                          nullptr, true};
    number = context.problem.add(std::move(whole));
  } else if (known->has_cost() || !known->works()) {
    return std::optional(number);
  }
  const Function function = candidates[number].function;
  const Target& target = kernel.spec->target;
  if (context.costs->is_frozen() && !context.costs->is_known(function, target))
    return std::optional<size_t>();
  TargetCosts costs = std::move(TRY(context.costs->function_costs(function, {target})).at(0));
  leave_out(function, costs, context.demands);
  context.problem.answer(number, std::make_shared<const TargetCosts>(std::move(costs)));
  return std::optional(number);
}

// Touching kernels of one toolchain become one, where it accepts anything joined with anything
// (PartitionSpec::merges), in the best cover in which anything can be merged. By mock costs that
// always wins; of measured ones nobody knows, so the merged kernels are measured, and the cover is
// one more that is timed end to end.
Wanted find_merged(VariationContext& context, const Target&) {
  std::vector<CandidatePartition> kernels, whole;
  for (context.varied = 0; context.varied < context.found.size(); ++context.varied) {
    kernels.clear();
    for (const Cover::Kernel& kernel : context.found[context.varied].kernels)
      kernels.push_back(context.problem.candidates()[kernel.candidate].partition);
    whole = merge_touching(context.graph, kernels);
    if (whole.size() < kernels.size()) break;
  }
  if (context.varied == context.found.size()) return nothing();
  context.position = context.varied + 1;
  std::set<size_t> members;  // candidates
  for (const CandidatePartition& kernel : whole) {
    const std::optional<size_t> candidate = TRY(whole_of(kernel, context));
    if (!candidate) return nothing();
    if (context.problem.candidates()[*candidate].has_cost()) {
      members.insert(*candidate);
      continue;
    }
    // It does not work, or is the host's and new: what it was made of stays.
    for (const Cover::Kernel& part : context.found[context.varied].kernels)
      if (context.problem.candidates()[part.candidate].partition.sub_graph.inside().is_subset_of(
              kernel.sub_graph.inside()))
        members.insert(part.candidate);
  }
  if (members.size() == kernels.size()) return nothing();
  return wanted([members](const SearchProblem& problem) {
    return search_covers(
        restricted(problem, [&](size_t candidate, size_t) { return members.contains(candidate); }),
        one_cover());
  });
}

// A schedule that a schedule search found was the fastest of many in isolation, so that its cost is
// too low rather than too high. Where the best cover uses some, the best one by schedules that
// targets list is timed too.
Wanted find_listed_schedules(VariationContext& context, const Target&) {
  const std::vector<CostedCandidate>& candidates = context.problem.candidates();
  std::map<const TargetCosts*, std::set<size_t>> found;  // variants of shared costs
  const auto found_of = [&](size_t c) -> const std::set<size_t>& {
    const CostedCandidate& candidate = candidates[c];
    const auto [known, is_new] = found.try_emplace(candidate.costs.get());
    if (!is_new || candidate.is_host()) return known->second;
    const std::optional<TargetCosts> searched = context.costs->searched_schedules(
        canonical_text(candidate.function), candidate.partition.spec->target);
    for (size_t v = 0; searched && v < candidate.costs->variants.size(); ++v)
      for (const MeasuredVariant& row : searched->variants)
        if (row.variant == candidate.costs->variants[v].variant) known->second.insert(v);
    return known->second;
  };
  const std::vector<Cover::Kernel>& best = context.found[0].kernels;
  if (std::none_of(best.begin(), best.end(), [&](const Cover::Kernel& kernel) {
        return found_of(kernel.candidate).contains(kernel.variant);
      }))
    return nothing();
  std::set<std::pair<size_t, size_t>> left_out;
  for (size_t c = 0; c < candidates.size(); ++c)
    for (size_t variant : found_of(c)) left_out.emplace(c, variant);
  const auto single = std::find_if(context.found.begin(), context.found.end(),
                                   [](const NamedCover& cover) { return cover.single_backend; });
  context.varied = 0;
  context.position = static_cast<size_t>(single - context.found.begin());
  return wanted([left_out](const SearchProblem& problem) {
    return search_covers(restricted(problem,
                                    [&](size_t candidate, size_t variant) {
                                      return !left_out.contains({candidate, variant});
                                    }),
                         one_cover());
  });
}

}  // namespace

std::span<const CoverVariation> cover_variations() {
  using enum CoverVariation::Of;
  static constexpr CoverVariation kRows[] = {
      {kCheapest, "cover {}", kProblem, find_cheapest},
      {"side by side", "cover {}", kProblem, find_side_by_side},
      {"single backend", "{}", kSingleBackend, find_single_backend},
      {"single backend in regions", "{} (whole)", kSingleBackend, find_single_in_regions},
      {"mostly one backend", "mostly {}", kMostlyOne, find_mostly_one},
      {"mostly one backend in regions", "mostly {} (whole)", kMostlyOne, find_mostly_in_regions},
      {"own partition", "{} first", kMostlyOne, find_own_partition},
      {"merged", "{} merged", kFoundCovers, find_merged},
      {"listed schedules", "listed schedules", kFoundCovers, find_listed_schedules},
  };
  return kRows;
}

}  // namespace collage
