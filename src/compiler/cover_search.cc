#include "compiler/cover_search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include "base/log.h"
#include "search/search.h"

namespace collage {

namespace {

// Between kernels: the executor's dispatch. Measured kernels carry their own call overhead.
constexpr double kLaunchPenalty = 0.5e-6;
// A kernel with threads of its own among kernels of the team: parking one pool, waking the other,
// and the idle spinning of the one that ran last, which slows the next kernel. Alone in a program
// it costs nothing, which end-to-end timing shows.
constexpr double kPoolSwitch = 300e-6;
// A cover's host kernels are measured and the search repeated; more rounds than this change nothing
// that matters.
constexpr int kMaxRounds = 6;

// What nobody measured: a slow processor's time by flops and bytes, so that a measured alternative
// wins.
double analytic_seconds(const Function& function) {
  constexpr double kFlopsPerSecond = 1e9, kBytesPerSecond = 2e9, kCall = 5e-6;
  return kCall + function_flops(function) / kFlopsPerSecond +
         function_bytes(function) / kBytesPerSecond;
}

// The host's stand-in until it is measured: one plain variant of unknown cost.
std::shared_ptr<const TargetCosts> unmeasured(const CostedCandidate& candidate) {
  auto costs = std::make_shared<TargetCosts>();
  costs->target = candidate.partition.spec->target.to_string();
  costs->variants.push_back({Variant::plain("unmeasured", candidate.function), Unknown{}});
  return costs;
}

bool is_host(const CostedCandidate& candidate) {
  return find_backend(candidate.partition.spec->target.kind)->is_host();
}

class Finder {
 public:
  Finder(const DataflowGraph& graph, std::vector<CostedCandidate>& candidates, MeasuredCosts& costs)
      : candidates_(candidates), costs_(costs) {
    problem_.graph = &graph;
    problem_.launch_penalty = kLaunchPenalty;
    problem_.conversion_cost = [this](const TensorType& type, const Encoding& from,
                                      const Encoding& to) {
      return conversion_seconds(type, from, to);
    };
    for (CostedCandidate& candidate : candidates_) {
      if (candidate.costs == nullptr) candidate.costs = unmeasured(candidate);
      problem_.candidates.push_back({&candidate.partition, {}});
      variants_.emplace_back();
      fill(problem_.candidates.size() - 1);
    }
  }

  // Searches until every kernel of every cover found has been measured.
  template <typename Search>
  Result<SearchResult> settle(Search&& search) {
    for (int round = 0;; ++round) {
      const double converting_before = converting_seconds_;
      SearchResult result = TRY(search());
      search_seconds_ += result.seconds - (converting_seconds_ - converting_before);
      if (round == kMaxRounds || !TRY(measure_unknown(result))) return result;
    }
  }

  const SearchProblem& problem() const { return problem_; }

  // The problem without the target's candidates that lie inside another usable one of its own: what
  // is left of them are the regions that a whole-sub-graph toolchain would take by itself.
  SearchProblem with_maximal_regions(const std::string& target) const {
    SearchProblem restricted = problem_;
    std::vector<size_t> own;
    for (size_t c = 0; c < candidates_.size(); ++c)
      if (candidates_[c].partition.spec->target.kind == target &&
          !problem_.candidates[c].variants.empty())
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
  double search_seconds() const { return search_seconds_; }
  Status conversion_failure() const { return failure_; }

  NamedCover named(std::string name, bool single, const Cover& cover) const {
    NamedCover result{std::move(name), single, {}, cover.seconds};
    for (const ChosenKernel& kernel : cover.kernels)
      result.kernels.push_back({kernel.candidate, variants_[kernel.candidate][kernel.variant]});
    result.conversions = cover.conversions;
    return result;
  }

 private:
  void fill(size_t c) {
    problem_.candidates[c].variants.clear();
    variants_[c].clear();
    const TargetCosts& costs = *candidates_[c].costs;
    const Backend& backend = *find_backend(candidates_[c].partition.spec->target.kind);
    double penalty = backend.brings_own_threads() ? kPoolSwitch : 0;
    for (size_t v = 0; v < costs.variants.size(); ++v) {
      const MeasuredVariant& row = costs.variants[v];
      if (std::holds_alternative<Invalid>(row.cost)) continue;
      const Measured* m = measured(row.cost);
      problem_.candidates[c].variants.push_back(
          {row.variant,
           (m != nullptr ? m->seconds() : analytic_seconds(candidates_[c].function)) + penalty});
      variants_[c].push_back(v);
    }
  }

  double conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to) {
    auto [it, inserted] = conversions_.try_emplace({type.to_string(), from, to},
                                                   std::numeric_limits<double>::infinity());
    if (!inserted) return it->second;
    const auto begin = std::chrono::steady_clock::now();
    Result<MeasuredCosts::Conversion> conversion = costs_.conversion_cost(type, from, to);
    converting_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!conversion) {
      failure_ = conversion.status();
    } else if (const Measured* m = measured(conversion->cost)) {
      it->second = m->seconds();
    }
    return it->second;
  }

  // Measures what the covers use and nobody measured; true when something was.
  Result<bool> measure_unknown(const SearchResult& result) {
    std::vector<size_t> unknown;
    for (const Cover& cover : result.covers)
      for (const ChosenKernel& kernel : cover.kernels)
        if (std::holds_alternative<Unknown>(
                candidates_[kernel.candidate]
                    .costs->variants[variants_[kernel.candidate][kernel.variant]]
                    .cost))
          unknown.push_back(kernel.candidate);
    std::sort(unknown.begin(), unknown.end());
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    for (size_t c : unknown) {
      CostedCandidate& candidate = candidates_[c];
      std::vector<TargetCosts> answer =
          TRY(costs_.function_costs(candidate.function, {candidate.partition.spec->target}));
      candidate.costs = std::make_shared<const TargetCosts>(std::move(answer[0]));
      fill(c);
    }
    return !unknown.empty();
  }

  std::vector<CostedCandidate>& candidates_;
  MeasuredCosts& costs_;
  SearchProblem problem_;
  std::vector<std::vector<size_t>>
      variants_;  // of a candidate: which of its costs each of the problem's variants is
  std::map<std::tuple<std::string, Encoding, Encoding>, double> conversions_;
  Status failure_;
  double search_seconds_ = 0;      // without the measuring that the search waited for
  double converting_seconds_ = 0;  // of that measuring: conversions are measured when asked for
};

// The part of the graph's work that a target does in a cover.
double flops_share(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                   const std::string& target) {
  double own = 0, all = 0;
  for (const CoverKernel& kernel : cover.kernels) {
    double flops = function_flops(candidates[kernel.candidate].function);
    all += flops;
    if (candidates[kernel.candidate].partition.spec->target.kind == target) own += flops;
  }
  return all > 0 ? own / all : 1;
}

}  // namespace

Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                std::vector<CostedCandidate>& candidates, MeasuredCosts& costs) {
  Finder finder(graph, candidates, costs);
  CoverSearch found;
  SearchOptions options;
  options.top_k = kTopCovers;
  SearchResult result =
      TRY(finder.settle([&] { return search_covers(finder.problem(), options); }));
  TRY(finder.conversion_failure());
  found.lower_bound_seconds = result.lower_bound;
  found.exact = result.exact;
  found.states = result.states;
  found.search_seconds = finder.search_seconds();
  for (const Cover& cover : result.covers)
    found.covers.push_back(
        finder.named("cover " + std::to_string(found.covers.size() + 1), false, cover));

  std::string host;
  std::vector<std::string> targets;
  for (const CostedCandidate& candidate : candidates) {
    const std::string& kind = candidate.partition.spec->target.kind;
    if (is_host(candidate)) {
      host = kind;
    } else if (std::find(targets.begin(), targets.end(), kind) == targets.end()) {
      targets.push_back(kind);
    }
  }
  options.top_k = 1;
  auto add_single = [&](const std::string& name, const std::string& target,
                        auto&& problem) -> Status {
    Result<SearchResult> single = finder.settle([&]() -> Result<SearchResult> {
      return single_backend_cover(problem(), target, host, options);
    });
    if (!single) {
      log::info("no cover by {} alone: {}", target, single.status().to_string());
      return {};
    }
    NamedCover cover = finder.named(name, true, single->covers.at(0));
    if (flops_share(cover, candidates, target) >= kSingleBackendFlops)
      found.covers.push_back(std::move(cover));
    return {};
  };
  for (const std::string& target : targets) {
    TRY(add_single(target, target, [&] { return finder.problem(); }));
    if (find_backend(target)->prefers_maximal_regions())
      TRY(add_single(target + " (whole)", target,
                     [&] { return finder.with_maximal_regions(target); }));
  }
  TRY(finder.conversion_failure());
  return found;
}

Result<CoverSearch> find_compatible_covers(const DataflowGraph& graph,
                                           std::vector<CostedCandidate>& candidates,
                                           MeasuredCosts& costs,
                                           const std::vector<PartitionSpecPtr>& specs,
                                           const std::vector<std::vector<size_t>>& sets) {
  if (sets.size() == 1) return find_covers(graph, candidates, costs);
  CoverSearch all;
  for (const std::vector<size_t>& set : sets) {
    auto usable = [&](const CostedCandidate& candidate) {
      return std::any_of(set.begin(), set.end(),
                         [&](size_t s) { return specs[s] == candidate.partition.spec; });
    };
    std::vector<CostedCandidate> some = candidates;
    for (CostedCandidate& candidate : some)
      if (!usable(candidate)) candidate.costs = std::make_shared<const TargetCosts>();
    CoverSearch found = TRY(find_covers(graph, some, costs));
    for (size_t c = 0; c < some.size(); ++c)
      if (usable(some[c])) candidates[c].costs = some[c].costs;  // measured on the way
    bool first = all.covers.empty();
    all.lower_bound_seconds = first ? found.lower_bound_seconds
                                    : std::min(all.lower_bound_seconds, found.lower_bound_seconds);
    all.exact = (first || all.exact) && found.exact;
    all.states += found.states;
    all.search_seconds += found.search_seconds;
    for (NamedCover& cover : found.covers)
      if (std::none_of(all.covers.begin(), all.covers.end(), [&](const NamedCover& other) {
            return cover.single_backend && other.name == cover.name;
          }))
        all.covers.push_back(std::move(cover));
  }
  std::stable_sort(all.covers.begin(), all.covers.end(),
                   [](const NamedCover& a, const NamedCover& b) {
                     if (a.single_backend != b.single_backend) return b.single_backend;
                     return !a.single_backend && a.predicted_seconds < b.predicted_seconds;
                   });
  for (size_t i = 0; i < all.covers.size(); ++i)
    if (!all.covers[i].single_backend) all.covers[i].name = "cover " + std::to_string(i + 1);
  return all;
}

KernelChoice kernel_choice(const CostedCandidate& candidate, size_t variant) {
  return {candidate.partition.sub_graph, candidate.partition.spec->target,
          candidate.costs->variants[variant].variant};
}

std::string cover_text(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  std::vector<std::string> lines;
  for (const CoverKernel& kernel : cover.kernels) {
    KernelChoice choice = kernel_choice(candidates[kernel.candidate], kernel.variant);
    lines.push_back(choice.sub_graph.inside().to_string() + " " + choice.target.to_string() + " " +
                    choice.variant.to_string());
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "; ";
  return text;
}

}  // namespace collage
