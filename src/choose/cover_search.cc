#include "choose/cover_search.h"

#include <algorithm>

#include "base/log.h"
#include "choose/cover_problem.h"
#include "search/search.h"
#include "search/side_by_side.h"

namespace collage {

namespace {

bool by_prediction(const NamedCover& a, const NamedCover& b) {
  return a.predicted_seconds < b.predicted_seconds;
}

// The part of the graph's work that a target does in a cover.
double flops_share(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                   const Target& target) {
  double own = 0, all = 0;
  for (const CoverKernel& kernel : cover.kernels) {
    double flops = function_flops(candidates[kernel.candidate].function);
    all += flops;
    if (candidates[kernel.candidate].partition.spec->target == target) own += flops;
  }
  return all > 0 ? own / all : 1;
}

// Bytes that a call gives, and of the constants that it reads.
double call_bytes(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr || call->op->is_view) return 0;
  double bytes = type_bytes(call->type());
  for (const Expr& arg : call->args)
    if (arg->kind() == ExprKind::kConstant) bytes += type_bytes(arg->type());
  return bytes;
}

// The parts of it that a target could do: of the arithmetic, and of the bytes that calls make or
// read as constants, which is what a model bound by memory takes its time for.
struct Reach {
  double flops = 1, bytes = 1;
};
Reach reach_of(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
               const Target& target) {
  IndexSet reached;
  for (const CostedCandidate& candidate : candidates)
    if (candidate.partition.spec->target == target && candidate.works())
      reached |= candidate.partition.sub_graph.inside();
  auto share = [&](auto&& amount) {
    double own = 0, all = 0;
    for (const DataflowGraph::Node& node : graph.nodes()) {
      all += amount(node.expr);
      if (reached.contains(node.index)) own += amount(node.expr);
    }
    return all > 0 ? own / all : 1;
  };
  return {share([](const Expr& expr) { return call_flops(expr); }), share(call_bytes)};
}

}  // namespace

NamedCover named_cover(const CoverProblem& problem, std::string name, bool single,
                       const Cover& cover) {
  NamedCover result{std::move(name), single, {}, cover.seconds};
  const SearchProblem& searched = problem.problem();
  for (const ChosenKernel& kernel : cover.kernels) {
    double seconds = searched.candidates[kernel.candidate].variants[kernel.variant].seconds +
                     searched.launch_penalty;
    if (problem.own_pool(kernel)) seconds -= problem.charges().pool_switch;
    result.kernels.push_back({kernel.candidate, problem.costed_variant(kernel), seconds,
                              problem.candidates()[kernel.candidate].costs});
  }
  result.conversions = cover.conversions;
  for (ChosenConversion& conversion : result.conversions)
    conversion.seconds += searched.launch_penalty;
  result.plain_seconds = cover.seconds;
  std::vector<bool> own_pool;  // of what runs, in order; conversions run on the team
  size_t conversion = 0;
  for (size_t k = 0; k < cover.kernels.size(); ++k) {
    for (; conversion < cover.conversions.size() && cover.conversions[conversion].before <= k;
         ++conversion)
      own_pool.push_back(false);
    own_pool.push_back(problem.own_pool(cover.kernels[k]));
    if (own_pool.back()) result.plain_seconds -= problem.charges().pool_switch;
  }
  if (conversion < cover.conversions.size()) own_pool.push_back(false);
  for (size_t k = 0; k < own_pool.size(); ++k)
    result.switches += own_pool[k] != own_pool[(k + 1) % own_pool.size()];
  const std::vector<DeviceStep> steps = device_steps(searched, cover);
  if (!std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step.is_on_host(); }))
    result.overlap_seconds = std::max(0.0, cover.seconds - overlapped_seconds(steps));
  return result;
}

namespace {

// What may take less than any cover of the search where devices compute side by side.
Status add_cover_side_by_side(const Cover& cheapest, CoverProblem& problem, CoverSearch& found) {
  const SearchResult side = TRY(problem.settle(
      [&]() -> Result<SearchResult> { return cover_side_by_side(problem.problem(), cheapest); }));
  for (const Cover& cover : side.covers)
    found.covers.push_back(
        named_cover(problem, "cover " + std::to_string(found.covers.size() + 1), false, cover));
  return {};
}

// The single-backend covers, and those of mostly one backend, behind the covers of the search.
Status add_covers_of_backends(const DataflowGraph& graph,
                              const std::vector<CostedCandidate>& candidates, CoverProblem& problem,
                              CoverSearch& found) {
  const size_t searched = found.covers.size();
  Target host;
  std::vector<Target> targets;
  for (const CostedCandidate& candidate : candidates) {
    const Target& target = candidate.partition.spec->target;
    if (candidate.is_host()) {
      host = target;
    } else if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
      targets.push_back(target);
    }
  }
  SearchOptions options;
  options.top_k = 1;
  auto add_single = [&](const std::string& name, const Target& target, auto&& which) -> Status {
    Result<SearchResult> single = problem.settle([&]() -> Result<SearchResult> {
      return single_backend_cover(which(), target, host, options);
    });
    if (!single) {
      log::info("no cover by {} alone: {}", name, single.status().to_string());
      return {};
    }
    NamedCover cover = named_cover(problem, name, true, single->covers.at(0));
    if (flops_share(cover, candidates, target) >= kSingleBackendWork)
      found.covers.push_back(std::move(cover));
    return {};
  };
  // Kernels of one backend hand tensors over in the same way, which their costs do not show.
  std::vector<NamedCover> mostly_one;
  auto add_mostly = [&](const std::string& name, const Target& target, auto&& which) {
    const Result<SearchResult> mostly =
        problem.settle([&] { return mostly_one_backend_cover(which(), target, options); });
    if (!mostly) {
      log::info("no cover {}: {}", name, mostly.status().to_string());
      return;
    }
    mostly_one.push_back(named_cover(problem, name, false, mostly->covers.at(0)));
    mostly_one.back().mostly_one = true;
  };
  for (const Target& target : targets) {
    const std::string name = target.to_string();
    const Reach reach = reach_of(graph, candidates, target);
    const auto all = [&] { return problem.problem(); };
    const auto regions = [&] { return problem.with_maximal_regions(target); };
    const bool by_regions = find_backend(target.kind)->traits().prefers_maximal_regions;
    // The host's costs for all the rest would be measured in vain.
    if (reach.flops >= kSingleBackendWork) TRY(add_single(name, target, all));
    if (reach.flops >= kSingleBackendWork && by_regions)
      TRY(add_single(name + " (whole)", target, regions));
    if (std::max(reach.flops, reach.bytes) < kSingleBackendWork) continue;
    add_mostly("mostly " + name, target, all);
    // Its regions as large as it takes them, whatever they cost when measured alone: what it gains
    // by having all of them shows only in whole runs.
    if (by_regions) add_mostly("mostly " + name + " (whole)", target, regions);
  }
  const auto last = found.covers.insert(found.covers.begin() + static_cast<ptrdiff_t>(searched),
                                        mostly_one.begin(), mostly_one.end());
  std::stable_sort(found.covers.begin(), last + static_cast<ptrdiff_t>(mostly_one.size()),
                   by_prediction);
  return {};
}

}  // namespace

Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                const std::vector<CostedCandidate>& candidates,
                                CostEstimator& estimator, const SearchWishes& wishes) {
  CoverCharges charges;
  charges.max_error = wishes.max_error;
  CoverProblem problem(graph, candidates, estimator, charges);
  CoverSearch found;
  SearchOptions options;
  options.top_k = wishes.wanted == WantedCovers::kAll ? kTopCovers : 1;
  SearchResult result =
      TRY(problem.settle([&] { return search_covers(problem.problem(), options); }));
  found.lower_bound_seconds = result.lower_bound;
  found.exact = result.exact;
  for (const Cover& cover : result.covers)
    found.covers.push_back(
        named_cover(problem, "cover " + std::to_string(found.covers.size() + 1), false, cover));
  if (wishes.wanted == WantedCovers::kAll) {
    TRY(add_cover_side_by_side(result.covers[0], problem, found));
    TRY(add_covers_of_backends(graph, candidates, problem, found));
  }
  found.candidates = problem.candidates();
  found.search_seconds = problem.search_seconds();
  found.counts = problem.counts();
  return found;
}

Result<CoverSearch> find_compatible_covers(const DataflowGraph& graph,
                                           const std::vector<CostedCandidate>& candidates,
                                           CostEstimator& estimator,
                                           const std::vector<PartitionSpecPtr>& specs,
                                           const std::vector<std::vector<size_t>>& sets,
                                           const SearchWishes& wishes) {
  if (sets.size() == 1) return find_covers(graph, candidates, estimator, wishes);
  CoverSearch all;
  all.candidates = candidates;
  for (const std::vector<size_t>& set : sets) {
    auto usable = [&](const CostedCandidate& candidate) {
      return std::any_of(set.begin(), set.end(),
                         [&](size_t s) { return specs[s] == candidate.partition.spec; });
    };
    std::vector<CostedCandidate> some = candidates;
    for (CostedCandidate& candidate : some)
      if (!usable(candidate)) candidate.costs = std::make_shared<const TargetCosts>();
    CoverSearch found = TRY(find_covers(graph, some, estimator, wishes));
    for (size_t c = 0; c < some.size(); ++c)
      if (usable(some[c])) all.candidates[c].costs = found.candidates[c].costs;
    bool first = all.covers.empty();
    all.lower_bound_seconds = first ? found.lower_bound_seconds
                                    : std::min(all.lower_bound_seconds, found.lower_bound_seconds);
    all.exact = (first || all.exact) && found.exact;
    all.search_seconds += found.search_seconds;
    all.counts += found.counts;
    for (NamedCover& cover : found.covers)
      if (std::none_of(all.covers.begin(), all.covers.end(), [&](const NamedCover& other) {
            return cover.single_backend && other.name == cover.name;
          }))
        all.covers.push_back(std::move(cover));
  }
  std::stable_sort(all.covers.begin(), all.covers.end(),
                   [](const NamedCover& a, const NamedCover& b) {
                     if (a.single_backend != b.single_backend) return b.single_backend;
                     return !a.single_backend && by_prediction(a, b);
                   });
  for (size_t i = 0; i < all.covers.size(); ++i)
    if (!all.covers[i].single_backend) all.covers[i].name = "cover " + std::to_string(i + 1);
  return all;
}

std::vector<CostedCandidate> with_costs_of(const std::vector<NamedCover>& covers,
                                           std::vector<CostedCandidate> candidates) {
  for (const NamedCover& cover : covers)
    for (const CoverKernel& kernel : cover.kernels) {
      CostedCandidate& candidate = candidates[kernel.candidate];
      if (!candidate.has_cost()) candidate.costs = kernel.costs;
    }
  return candidates;
}

KernelChoice kernel_choice(const CandidatePartition& partition, const Variant& variant) {
  return {partition.sub_graph, partition.spec->target, variant};
}

std::string kernel_text(const CandidatePartition& partition, const Variant& variant) {
  return partition.sub_graph.inside().to_string() + " " + partition.spec->target.to_string() + " " +
         variant.to_string();
}

std::string cover_text(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  std::vector<std::string> lines;
  for (const CoverKernel& kernel : cover.kernels)
    lines.push_back(kernel_text(candidates[kernel.candidate].partition, kernel.row().variant));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "; ";
  return text;
}

bool is_lowered(const NamedCover& cover) {
  return std::any_of(cover.kernels.begin(), cover.kernels.end(),
                     [](const CoverKernel& kernel) { return kernel.row().variant.lowered(); });
}

}  // namespace collage
