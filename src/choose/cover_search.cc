#include "choose/cover_search.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "choose/cover_variations.h"
#include "choose/light_cover.h"
#include "search/side_by_side.h"

namespace collage {

namespace {

bool by_prediction(const NamedCover& a, const NamedCover& b) { return a.seconds < b.seconds; }

// The part of the graph's work that a target does in a cover.
double flops_share(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                   const Target& target) {
  double own = 0, all = 0;
  for (const Cover::Kernel& kernel : cover.kernels) {
    double flops = function_flops(candidates[kernel.candidate].function);
    all += flops;
    if (candidates[kernel.candidate].partition.spec->target == target) own += flops;
  }
  return all > 0 ? own / all : 1;
}

std::string text_of(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  std::vector<std::string> lines;
  for (const Cover::Kernel& kernel : cover.kernels)
    lines.push_back(
        kernel_text(candidates[kernel.candidate].partition, row_of(kernel, candidates).variant));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "; ";
  return text;
}

std::string filled(const std::string& name, const std::string& what) {
  const size_t at = name.find("{}");
  return at == std::string::npos ? name : name.substr(0, at) + what + name.substr(at + 2);
}

// The loop over the table.
class CoverFinder {
 public:
  CoverFinder(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
              CostEstimator& estimator, const SearchWishes& wishes)
      : wishes_(wishes),
        problem_(graph, candidates, estimator, {.max_error = wishes.max_error}),
        context_{graph, problem_} {
    if (wishes.wanted == WantedCovers::kCheapest) context_.top_k = 1;
    for (const CostedCandidate& candidate : problem_.candidates()) {
      const Target& target = candidate.partition.spec->target;
      if (candidate.is_host()) {
        context_.host = target;
      } else if (std::find(targets_.begin(), targets_.end(), target) == targets_.end()) {
        targets_.push_back(target);
      }
    }
  }

  // Those of the problem and of single targets.
  Result<CoverSearch> find() {
    if (wishes_.targets == nullptr || wishes_.targets->compatible.size() == 1) {
      TRY(find_in(nullptr));
    } else {
      Status none;  // what a set leaves out may be stated, or pinned
      for (const std::vector<size_t>& set : wishes_.targets->compatible) {
        Status status = find_in(&set);
        if (!status.ok() && status.code() != ErrorCode::kUnsupported) return status;
        if (!status.ok()) none = std::move(status);
      }
      if (found_.covers.empty())
        return std::move(none).with_context("some targets are kept apart, and no others do");
    }
    std::stable_sort(found_.covers.begin(), found_.covers.end(),
                     [](const NamedCover& a, const NamedCover& b) {
                       if (a.single_backend != b.single_backend) return b.single_backend;
                       return !a.single_backend && by_prediction(a, b);
                     });
    // Sets of targets are searched one after the other.
    size_t number = 0;
    for (NamedCover& cover : found_.covers)
      if (!cover.single_backend && !cover.mostly_one)
        cover.name = "cover " + std::to_string(++number);
    return finished();
  }

  // Those of the covers found.
  Result<CoverSearch> vary(CoverSearch found, MeasuredCosts& costs, const VariantDemands& demands) {
    found_ = std::move(found);
    context_.costs = &costs;
    context_.demands = demands;
    for (const CoverVariation& row : cover_variations()) {
      if (row.of != CoverVariation::kFoundCovers) continue;
      context_.found = found_.covers;
      TRY(run(row, {}));
    }
    return finished();
  }

 private:
  // With targets of that set alone.
  Status find_in(const std::vector<size_t>* set) {
    set_ = set;
    for (const CoverVariation& row : cover_variations())
      if (row.of == CoverVariation::kProblem) TRY(run(row, {}));
    for (const Target& target : targets_)
      for (const CoverVariation& row : cover_variations())
        if (is_of_target(row) && is_in_set(target)) TRY(run(row, target));
    return {};
  }

  static bool is_of_target(const CoverVariation& row) {
    return row.of == CoverVariation::kSingleBackend || row.of == CoverVariation::kMostlyOne;
  }

  Status run(const CoverVariation& row, const Target& target) {
    const bool is_first = row.origin == std::string(kCheapest);
    if (!is_first && wishes_.wanted == WantedCovers::kCheapest) return {};
    const std::optional<FindCover> search = TRY(row.search(context_, target));
    if (!search) return {};
    if (row.of == CoverVariation::kFoundCovers) keep_to_set_of(found_.covers[context_.varied]);
    const Result<SearchResult> result = problem_.settle([&]() -> Result<SearchResult> {
      SearchResult one = TRY((*search)(usable()));
      if (is_first) return one;
      for (Cover& cover : one.covers) cover.origin = row.origin;
      one.counts.of_origin = {{row.origin, one.counts.searches}};
      return one;
    });
    if (is_first) {
      TRY(result.status());
      add_bounds(*result);
      context_.cheapest = result->covers[0];
    } else if (!result) {
      log::info("no cover '{}': {}", filled(row.name, target.to_string()),
                result.status().to_string());
      return {};
    }
    for (const Cover& cover : result->covers) add(row, target, cover);
    return {};
  }

  void add(const CoverVariation& row, const Target& target, const Cover& cover) {
    NamedCover named = named_cover(problem_, filled(row.name, target.to_string()), cover);
    named.mostly_one = row.of == CoverVariation::kMostlyOne;
    named.single_backend = row.of == CoverVariation::kSingleBackend;
    if (row.of == CoverVariation::kFoundCovers) {
      const NamedCover& varied = found_.covers[context_.varied];
      named.name = filled(row.name, varied.name);
      named.single_backend = varied.single_backend;
      found_.covers.insert(found_.covers.begin() + static_cast<ptrdiff_t>(context_.position),
                           std::move(named));
      return;
    }
    // A backend alone is the same in every set of targets.
    if (named.single_backend &&
        (flops_share(named, problem_.candidates(), target) < kSingleBackendWork ||
         std::any_of(found_.covers.begin(), found_.covers.end(),
                     [&](const NamedCover& other) { return other.name == named.name; })))
      return;
    found_.covers.push_back(std::move(named));
  }

  void add_bounds(const SearchResult& result) {
    const bool first = found_.covers.empty();
    found_.lower_bound_seconds =
        first ? result.lower_bound : std::min(found_.lower_bound_seconds, result.lower_bound);
    found_.exact = (first || found_.exact) && result.exact;
  }

  bool is_in_set(const Target& target) const {
    return set_ == nullptr || wishes_.targets->is_in(*set_, target);
  }

  void keep_to_set_of(const NamedCover& cover) {
    std::set<Target> used;
    for (const Cover::Kernel& kernel : cover.kernels)
      if (const CostedCandidate& one = problem_.candidates()[kernel.candidate]; !one.is_host())
        used.insert(one.partition.spec->target);
    if (wishes_.targets != nullptr) set_ = wishes_.targets->set_with(used);
  }

  // Candidates that were merged are for the row that merged them alone.
  const SearchProblem& usable() {
    const std::vector<CostedCandidate>& candidates = problem_.candidates();
    const auto is_usable = [&](const CostedCandidate& candidate) {
      return (!candidate.merged || context_.costs != nullptr) &&
             is_in_set(candidate.partition.spec->target);
    };
    if (std::all_of(candidates.begin(), candidates.end(), is_usable)) return problem_.problem();
    restricted_ = restricted(problem_.problem(), [&](size_t candidate, size_t) {
      return is_usable(candidates[candidate]);
    });
    return restricted_;
  }

  CoverSearch finished() {
    found_.candidates = problem_.candidates();
    found_.search_seconds += problem_.search_seconds();
    found_.counts += problem_.counts();
    return std::move(found_);
  }

  const SearchWishes& wishes_;
  CoverProblem problem_;
  VariationContext context_;
  SearchProblem restricted_;
  std::vector<Target> targets_;               // but the host
  const std::vector<size_t>* set_ = nullptr;  // of targets that may meet; null: all of them
  CoverSearch found_;
};

}  // namespace

NamedCover named_cover(const CoverProblem& problem, std::string name, const Cover& cover) {
  NamedCover result{cover, std::move(name)};
  const SearchProblem& searched = problem.problem();
  result.plain_seconds = cover.seconds;
  for (ChosenConversion& conversion : result.conversions)
    conversion.seconds += searched.launch_penalty;
  std::vector<bool> own_pool;  // of what runs, in order; conversions run on the team
  size_t conversion = 0;
  for (size_t k = 0; k < cover.kernels.size(); ++k) {
    const double understated = problem.understated(cover.kernels[k]);
    result.plain_seconds += understated;
    result.kernels[k].seconds += understated;
    for (; conversion < cover.conversions.size() && cover.conversions[conversion].before <= k;
         ++conversion)
      own_pool.push_back(false);
    own_pool.push_back(problem.own_pool(cover.kernels[k]));
    if (!own_pool.back()) continue;
    result.plain_seconds -= problem.charges().pool_switch;
    result.kernels[k].seconds -= problem.charges().pool_switch;
  }
  if (conversion < cover.conversions.size()) own_pool.push_back(false);
  for (size_t k = 0; k < own_pool.size(); ++k)
    result.switches += own_pool[k] != own_pool[(k + 1) % own_pool.size()];
  const std::vector<DeviceStep> steps = device_steps(searched, cover);
  if (!std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step.is_on_host(); }))
    result.overlap_seconds = std::max(0.0, cover.seconds - overlapped_seconds(steps));
  result.text = text_of(result, problem.candidates());
  std::set<Target> toolchains;
  for (const Cover::Kernel& kernel : cover.kernels) {
    const PartitionSpec& spec = *problem.candidates()[kernel.candidate].partition.spec;
    const Backend* backend = find_backend(spec.target.kind);
    if (spec.is_host || backend == nullptr) continue;
    if (!moves_nothing(spec)) toolchains.insert(spec.target);
    result.priorities += backend->traits().priority;
  }
  result.toolchains = toolchains.size();
  result.lowered =
      std::any_of(cover.kernels.begin(), cover.kernels.end(), [&](const Cover::Kernel& kernel) {
        return row_of(kernel, problem.candidates()).variant.lowered();
      });
  return result;
}

Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                const std::vector<CostedCandidate>& candidates,
                                CostEstimator& estimator, const SearchWishes& wishes) {
  return CoverFinder(graph, candidates, estimator, wishes).find();
}

Result<CoverSearch> with_variations(const Candidates& candidates, CoverSearch found,
                                    MeasuredCosts& costs, CostEstimator& estimator,
                                    const VariantDemands& demands) {
  const std::vector<CostedCandidate> costed = found.candidates;
  return CoverFinder(*candidates.graph, costed, estimator, {.targets = &candidates})
      .vary(std::move(found), costs, demands);
}

const MeasuredVariant& row_of(const Cover::Kernel& kernel,
                              const std::vector<CostedCandidate>& candidates) {
  return candidates[kernel.candidate].costs->variants[kernel.variant];
}

void add_cover(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
               CoverSearch& found) {
  std::map<std::pair<std::string, std::string>, size_t> known;  // by nodes and target
  const auto place = [](const CostedCandidate& candidate) {
    return std::pair(candidate.partition.sub_graph.inside().to_string(),
                     candidate.partition.spec->target.to_string());
  };
  for (size_t c = 0; c < found.candidates.size(); ++c) known.emplace(place(found.candidates[c]), c);
  NamedCover added = cover;
  for (Cover::Kernel& kernel : added.kernels) {
    const MeasuredVariant& used = row_of(kernel, candidates);
    const CostedCandidate& own = candidates[kernel.candidate];
    const auto [at, is_new] = known.emplace(place(own), found.candidates.size());
    if (is_new) found.candidates.push_back(own);
    CostedCandidate& candidate = found.candidates[at->second];
    if (candidate.costs == nullptr) candidate.costs = own.costs;
    const std::vector<MeasuredVariant>& rows = candidate.costs->variants;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const MeasuredVariant& row) {
      return row.variant == used.variant;
    });
    kernel.candidate = at->second;
    kernel.variant = static_cast<size_t>(same - rows.begin());
    if (same != rows.end()) continue;
    auto costs = std::make_shared<TargetCosts>(*candidate.costs);
    costs->variants.push_back(used);
    candidate.costs = std::move(costs);
  }
  found.covers.push_back(std::move(added));
}

void adopt_costs(const std::vector<CostedCandidate>& asked,
                 std::vector<CostedCandidate>& candidates) {
  for (size_t c = 0; c < candidates.size(); ++c)
    if (!candidates[c].has_cost() && asked[c].costs != nullptr)
      candidates[c].costs = asked[c].costs;
}

SearchProblem problem_of(const Cover& cover, const DataflowGraph& graph,
                         const std::vector<CostedCandidate>& candidates) {
  SearchProblem problem;
  problem.graph = &graph;
  problem.candidates.resize(candidates.size());
  for (const Cover::Kernel& kernel : cover.kernels) {
    CandidateCosts& used = problem.candidates[kernel.candidate];
    used.candidate = &candidates[kernel.candidate].partition;
    used.variants.resize(std::max(used.variants.size(), kernel.variant + 1));
    used.variants[kernel.variant].variant = row_of(kernel, candidates).variant;
  }
  return problem;
}

std::string kernel_text(const CandidatePartition& partition, const Variant& variant) {
  return partition.sub_graph.inside().to_string() + " " + partition.spec->target.to_string() + " " +
         variant.to_string();
}

}  // namespace collage
