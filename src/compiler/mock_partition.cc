#include "compiler/mock_partition.h"

#include <algorithm>

#include "choose/cover_problem.h"
#include "compiler/describe_cover.h"
#include "cost/mock_costs.h"
#include "ir/visitor.h"
#include "partition/merge.h"
#include "partition/prune.h"
#include "partition/rewrite.h"
#include "search/search.h"

namespace collage {

namespace {

// Ties go to fewer kernels: of the smallest cost, far below any difference that is no tie, and far
// above what breaks ties between targets.
constexpr double kPerKernel = 1e-7;

Variant mock_variant(const DataflowGraph& graph, const SubGraph& sub_graph) {
  Variant variant;
  variant.name = "mock";
  auto add = [&](const IndexSet& nodes, std::vector<Encoding>& encodings) {
    nodes.for_each([&](PostDfsIndex i) {
      for (const TensorType& leaf : graph.node(i).expr->type().leaves())
        encodings.push_back(plain_encoding(leaf));
    });
  };
  add(sub_graph.input(), variant.inputs);
  add(sub_graph.exit(), variant.outputs);
  return variant;
}

double cost_of(const CostedCandidate& candidate) {
  return median_seconds(candidate.costs->variants[0].cost);
}

class MockPartitioner {
 public:
  MockPartitioner(const PartitionConfig& config, bool keep_search)
      : config_(config), keep_search_(keep_search), costs_(config) {
    auto host = std::make_shared<PartitionSpec>();
    host->name = host->target.kind = "host";
    host->is_host = true;
    host_ = host;
  }

  Result<MockPartition> run(const Module& module) {
    result_.module = module;
    result_.costs = "mock";
    for (const auto& [name, function] : module.functions)
      if (!function->attrs.has("Primitive")) TRY(partition(name, function));
    result_.estimates = costs_.estimates();
    return std::move(result_);
  }

 private:
  struct Chosen {
    std::vector<CandidatePartition> kernels;
    double cost = 0;
    double rank = 0;  // with ties broken
    CoverSearch search;
  };

  Status partition(const std::string& name, const Function& function) {
    auto shared = std::make_shared<const DataflowGraph>(untangle_tuples(function));
    const DataflowGraph& graph = *shared;
    TRY(check_places(graph, config_.specs));
    TRY(check_no_scopes(graph));
    const std::vector<CandidatePartition> all = gather_candidates(graph, config_.specs);
    result_.candidates += all.size();
    result_.truncated += count_truncated(all);
    std::optional<Chosen> best;
    for (const std::vector<size_t>& set : compatible_targets(config_.specs, config_.incompatible)) {
      std::vector<CandidatePartition> usable;
      for (const CandidatePartition& candidate : all)
        if (std::any_of(set.begin(), set.end(),
                        [&](size_t s) { return config_.specs[s] == candidate.spec; }))
          usable.push_back(candidate);
      Chosen chosen = TRY(choose(graph, usable));
      if (!best || chosen.rank < best->rank) best = std::move(chosen);
    }
    result_.cost += best->cost;
    if (name == "main" && keep_search_) {
      result_.search = std::move(best->search);
      result_.graph = shared;
    }
    return rewrite(graph, name, merge_touching(graph, std::move(best->kernels)));
  }

  Result<Chosen> choose(const DataflowGraph& graph, const std::vector<CandidatePartition>& all) {
    std::vector<CandidatePartition> kept = prune_candidates(graph, all);
    size_t before = kept.size();
    add_host(graph, all, false, kept);
    Result<Chosen> chosen = search(graph, kept);
    if (!chosen && chosen.status().code() == ErrorCode::kUnsupported) {
      // Candidates that do not fit together: smaller ones, and the host for what is left over.
      kept = all;
      before = kept.size();
      add_host(graph, all, true, kept);
      chosen = search(graph, kept);
    }
    result_.kept += before;
    return chosen;
  }

  // The host takes what no target does; otherwise, with `fallback`, it is dearer than any target.
  void add_host(const DataflowGraph& graph, const std::vector<CandidatePartition>& all,
                bool fallback, std::vector<CandidatePartition>& kept) const {
    IndexSet taken;
    for (const CandidatePartition& candidate : all) taken |= candidate.sub_graph.inside();
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      NodeRole role = node_role(graph, i);
      if (role != NodeRole::kKernel && role != NodeRole::kView) continue;
      if (taken.contains(i) && !fallback) continue;
      SubGraph alone = SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({i})));
      kept.push_back({taken.contains(i) ? "fallback" : "host", std::move(alone), host_});
    }
  }

  Result<std::vector<CostedCandidate>> with_costs(
      const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates) {
    std::vector<KernelQuestion> questions;
    for (const CandidatePartition& candidate : candidates)
      questions.push_back({candidate.function(graph, ConstantsInside::kRequired),
                           candidate.spec->target, mock_variant(graph, candidate.sub_graph)});
    std::vector<TargetCosts> answers = TRY(costs_.kernel_costs(questions));
    std::vector<CostedCandidate> costed;
    for (size_t c = 0; c < candidates.size(); ++c) {
      if (candidates[c].rule_name == "fallback" && candidates[c].spec->is_host) {
        const double dear = 1e6 * costs_.unit();
        answers[c].variants[0].cost = Measured{dear, dear, dear, 1};
      }
      answers[c].target = candidates[c].spec->name;
      costed.push_back({candidates[c], std::move(questions[c].function),
                        std::make_shared<const TargetCosts>(std::move(answers[c]))});
    }
    return costed;
  }

  Result<Chosen> search(const DataflowGraph& graph,
                        const std::vector<CandidatePartition>& candidates) {
    const CoverCharges charges = {kPerKernel * costs_.unit(), 0, true};
    CoverProblem problem(graph, TRY(with_costs(graph, candidates)), costs_, charges);
    Chosen chosen;
    const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
      NodeRole role = node_role(node.expr);
      return role == NodeRole::kKernel || role == NodeRole::kView;
    });
    if (!any) return chosen;
    SearchOptions options;
    options.top_k = 1;
    const SearchResult found =
        TRY(problem.settle([&] { return search_covers(problem.problem(), options); }));
    chosen.rank = found.covers.at(0).seconds;
    for (const Cover::Kernel& kernel : found.covers[0].kernels) {
      chosen.cost += cost_of(problem.candidates()[kernel.candidate]);
      chosen.kernels.push_back(candidates[kernel.candidate]);
    }
    if (keep_search_) chosen.search = describe(problem, found, options);
    return chosen;
  }

  // The search in the terms of a compilation's.
  CoverSearch describe(const CoverProblem& problem, const SearchResult& found,
                       const SearchOptions& options) const {
    constexpr double kUnit = 1e-3;
    CoverSearch search;
    search.candidates = problem.candidates();
    for (CostedCandidate& candidate : search.candidates) {
      auto costs = std::make_shared<TargetCosts>(*candidate.costs);
      const double seconds = kUnit * cost_of(candidate);
      costs->variants[0].cost = Measured{seconds, seconds, seconds, 1};
      candidate.costs = std::move(costs);
    }
    auto add = [&](const std::string& name, bool single, const Cover& cover) {
      NamedCover named;
      named.name = name;
      named.origin = cover.origin;
      named.single_backend = single;
      for (const Cover::Kernel& kernel : cover.kernels) {
        const double cost = cost_of(search.candidates[kernel.candidate]);
        named.kernels.push_back({kernel.candidate, 0, cost});
        named.seconds += cost;
      }
      search.covers.push_back(std::move(named));
    };
    add("cover 1", false, found.covers.at(0));
    for (const PartitionSpecPtr& spec : config_.specs)
      if (auto alone =
              single_backend_cover(problem.problem(), spec->target, host_->target, options);
          alone.ok())
        add(spec->name, true, alone->covers.at(0));
    search.lower_bound_seconds = std::min(kUnit * found.lower_bound, search.covers[0].seconds);
    search.exact = found.exact;
    search.counts = found.counts;
    return search;
  }

  Status rewrite(const DataflowGraph& graph, const std::string& name,
                 const std::vector<CandidatePartition>& kernels) {
    WriteOptions options;
    options.constants = ConstantsInside::kRequired;
    options.function = name;
    WrittenKernels written =
        TRY(write_kernels(graph, kernels_to_write(kernels), result_.module, options));
    result_.module = std::move(written.module);
    std::vector<ListedPartition::Kernel> listed = list_kernels(graph, kernels, written.names);
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (kernels[k].spec->is_host) {
        for (const auto& [op, index] : listed[k].calls) result_.host.push_back(op);
        continue;
      }
      listed[k].target = kernels[k].spec->name;
      listed[k].cost = costs_.cost(kernels[k].function(graph, ConstantsInside::kRequired),
                                   kernels[k].spec->target);
      result_.kernels.push_back(std::move(listed[k]));
    }
    return {};
  }

  const PartitionConfig& config_;
  const bool keep_search_;
  MockCosts costs_;
  PartitionSpecPtr host_;
  MockPartition result_;
};

}  // namespace

Result<MockPartition> partition_with_mock_costs(const Module& module, const PartitionConfig& config,
                                                bool keep_search) {
  return MockPartitioner(config, keep_search).run(module);
}

CompileReport report_of(const MockPartition& partition, const PartitionConfig& config) {
  const CoverSearch& search = partition.search;
  const DataflowGraph& graph = *partition.graph;
  CompileReport report;
  for (const PartitionSpecPtr& spec : config.specs) report.targets.push_back(spec->name);
  report_graph(graph, search.candidates, report);
  CoverChoice choice;
  choice.index = 0;
  for (const NamedCover& cover : search.covers) choice.timings.push_back({cover.seconds});
  report_covers(graph, search, choice, report);
  ReportedPlan chosen = describe_cover(graph, search.candidates, search.covers.at(0));
  report.kernels = std::move(chosen.kernels);
  report.conversions = std::move(chosen.conversions);
  report.predicted_seconds = report.isolated_seconds = search.covers[0].seconds;
  report.lower_bound_seconds = search.lower_bound_seconds;
  report.exact = search.exact;
  report.searches = search.counts;
  report.candidates = partition.candidates;
  report.truncated = partition.truncated;
  report.functions = partition.estimates;
  report.partitioned = partition.module;
  return report;
}

}  // namespace collage
