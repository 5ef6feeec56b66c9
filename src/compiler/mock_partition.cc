#include "compiler/mock_partition.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_set>

#include "compiler/describe_cover.h"
#include "cover/costing.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "partition/lightweight.h"
#include "partition/merge.h"
#include "partition/prune.h"
#include "partition/rewrite.h"
#include "search/search.h"

namespace collage {

namespace {

// Ties go to fewer kernels, then to earlier targets: by fractions of the smallest cost, far below
// any difference between covers that do not tie, and far above rounding.
constexpr double kPerKernel = 1e-7;
constexpr double kPerTarget = 1e-10;

size_t count_operators(const Function& function) {
  size_t count = 0;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) continue;
    const auto* callee = as<FunctionNode>(call->callee);
    count += call->op != nullptr ? 1 : 0;
    if (callee != nullptr)
      count += count_operators(std::static_pointer_cast<const FunctionNode>(call->callee));
  }
  return count;
}

bool is_operator_call(const DataflowGraph& graph, PostDfsIndex i) {
  const auto* call = as<CallNode>(graph.node(i).expr);
  return call != nullptr && call->op != nullptr;
}

ListedKernel list_kernel(const DataflowGraph& graph, std::string name, std::string target,
                         const SubGraph& sub_graph) {
  ListedKernel listed{std::move(name), std::move(target), {}, 0};
  sub_graph.inside().for_each([&](PostDfsIndex i) {
    if (is_operator_call(graph, i))
      listed.calls.emplace_back(as<CallNode>(graph.node(i).expr)->op->name, i);
  });
  return listed;
}

// Rewrites the function in the module so that each sub-graph is a kernel, and lists these:
// `name_of` gives the name of a kernel's target.
template <typename NameOf>
Result<std::vector<ListedKernel>> rewrite_and_list(const DataflowGraph& graph,
                                                   const std::vector<CandidatePartition>& kernels,
                                                   ConstantsInside constants,
                                                   const std::string& name, Module& module,
                                                   NameOf&& name_of) {
  std::vector<const CandidatePartition*> pointers;
  for (const CandidatePartition& kernel : kernels) pointers.push_back(&kernel);
  PartitionedModule partitioned = TRY(partition_module(graph, pointers, constants, module, name));
  module = std::move(partitioned.module);
  std::vector<ListedKernel> listed;
  for (size_t k = 0; k < kernels.size(); ++k)
    listed.push_back(
        list_kernel(graph, partitioned.names[k], name_of(*kernels[k].spec), kernels[k].sub_graph));
  return listed;
}

class MockPartitioner {
 public:
  MockPartitioner(const PartitionConfig& config, const TargetConstraints& constraints,
                  bool keep_search)
      : config_(config),
        constraints_(constraints),
        keep_search_(keep_search),
        costs_(*config.mock_costs) {
    auto host = std::make_shared<PartitionSpec>();
    host->name = "host";
    host->target.kind = "host";
    host->is_host = true;
    host_ = host;
    unit_ = 0;
    for (const auto& [target, cost] : costs_.per_op)
      if (cost > 0 && (unit_ == 0 || cost < unit_)) unit_ = cost;
    if (unit_ == 0) unit_ = 1;
  }

  Result<MockPartition> run(const Module& module) {
    result_.module = module;
    for (const auto& [name, function] : module.functions)
      if (!function->attrs.has("Primitive")) TRY(partition(name, function));
    result_.estimates = estimates_.size();
    return std::move(result_);
  }

 private:
  struct Chosen {
    std::vector<CandidatePartition> kernels;
    double cost = 0;
    double rank = 0;  // with ties broken
    MockSearch search;
  };

  Status partition(const std::string& name, const Function& function) {
    auto shared = std::make_shared<const DataflowGraph>(untangle_tuples(function));
    const DataflowGraph& graph = *shared;
    std::vector<CandidatePartition> all = gather_candidates(graph, config_.specs);
    std::erase_if(all, [&](const CandidatePartition& candidate) {
      return !is_allowed(graph, candidate, constraints_);
    });
    result_.candidates += all.size();
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
      result_.search.graph = shared;
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

  double kernel_cost(size_t operators, double per_op) const {
    double cost = 0;
    for (size_t k = 0; k < operators; ++k)
      cost += per_op * std::pow(costs_.fusion_benefit, static_cast<double>(k));
    return cost;
  }

  Result<double> estimate(const DataflowGraph& graph, const CandidatePartition& candidate) {
    if (candidate.spec->is_host) return candidate.rule_name == "host" ? 0.0 : 1e6 * unit_;
    Function function = candidate.function(graph, ConstantsInside::kRequired);
    std::string key = candidate.spec->name + "\n" + canonical_text(function);
    if (estimates_.insert(std::move(key)).second && costs_.max_estimates != 0 &&
        estimates_.size() > costs_.max_estimates)
      return config_.error_at(
          "/mock_costs/max_estimates",
          fmt::format("more than {} distinct kernels would be estimated", costs_.max_estimates));
    return kernel_cost(count_operators(function), costs_.per_op.at(candidate.spec->name));
  }

  Result<Chosen> search(const DataflowGraph& graph,
                        const std::vector<CandidatePartition>& candidates) {
    SearchProblem problem;
    problem.graph = &graph;
    problem.views_need_kernels = true;
    problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) { return 0; };
    std::vector<double> costs;
    for (const CandidatePartition& candidate : candidates) {
      double cost = TRY(estimate(graph, candidate));
      Variant variant;
      variant.name = "mock";
      candidate.sub_graph.input().for_each([&](PostDfsIndex i) {
        for (const TensorType& leaf : graph.node(i).expr->type().leaves())
          variant.inputs.push_back(plain_encoding(leaf));
      });
      candidate.sub_graph.exit().for_each([&](PostDfsIndex i) {
        for (const TensorType& leaf : graph.node(i).expr->type().leaves())
          variant.outputs.push_back(plain_encoding(leaf));
      });
      double position = static_cast<double>(config_.specs.size());
      for (size_t s = 0; s < config_.specs.size(); ++s)
        if (config_.specs[s] == candidate.spec) position = static_cast<double>(s);
      costs.push_back(cost);
      problem.candidates.push_back(
          {&candidate,
           {{std::move(variant), cost + unit_ * (kPerKernel + kPerTarget * position)}}});
    }
    SearchOptions options;
    options.top_k = 1;
    Chosen chosen;
    bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
      NodeRole role = node_role(node.expr);
      return role == NodeRole::kKernel || role == NodeRole::kView;
    });
    if (!any) return chosen;
    SearchResult found = TRY(search_covers(problem, options));
    const Cover& cover = found.covers.at(0);
    chosen.rank = cover.seconds;
    for (const ChosenKernel& kernel : cover.kernels) {
      chosen.cost += costs[kernel.candidate];
      chosen.kernels.push_back(candidates[kernel.candidate]);
    }
    if (keep_search_) chosen.search = describe(problem, found, costs);
    return chosen;
  }

  // The search in the terms of a compilation's.
  MockSearch describe(const SearchProblem& problem, const SearchResult& found,
                      const std::vector<double>& costs) const {
    constexpr double kUnit = 1e-3;
    MockSearch search;
    for (size_t c = 0; c < costs.size(); ++c) {
      const CandidatePartition& candidate = *problem.candidates[c].candidate;
      auto known = std::make_shared<TargetCosts>();
      double seconds = kUnit * costs[c];
      known->target = candidate.spec->name;
      known->variants.push_back(
          {problem.candidates[c].variants[0].variant, Measured{seconds, seconds, seconds, 1}});
      search.candidates.push_back(
          {candidate, candidate.function(*problem.graph, ConstantsInside::kRequired), known});
    }
    auto add = [&](const std::string& name, bool single, const Cover& cover) {
      NamedCover named{name, single, {}, 0};
      for (const ChosenKernel& kernel : cover.kernels) {
        named.kernels.push_back({kernel.candidate, 0, kUnit * costs[kernel.candidate],
                                 search.candidates[kernel.candidate].costs});
        named.predicted_seconds += named.kernels.back().seconds;
      }
      search.covers.push_back(std::move(named));
    };
    add("cover 1", false, found.covers.at(0));
    SearchOptions options;
    options.top_k = 1;
    for (const PartitionSpecPtr& spec : config_.specs)
      if (auto alone = single_backend_cover(problem, spec->target, host_->target, options);
          alone.ok())
        add(spec->name, true, alone->covers.at(0));
    search.lower_bound_seconds =
        std::min(kUnit * found.lower_bound, search.covers[0].predicted_seconds);
    search.exact = found.exact;
    search.states = found.states;
    search.counts = found.counts;
    return search;
  }

  Status rewrite(const DataflowGraph& graph, const std::string& name,
                 const std::vector<CandidatePartition>& kernels) {
    std::vector<ListedKernel> listed =
        TRY(rewrite_and_list(graph, kernels, ConstantsInside::kRequired, name, result_.module,
                             [](const PartitionSpec& spec) { return spec.name; }));
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (kernels[k].spec->is_host) {
        for (const auto& [op, index] : listed[k].calls) result_.host.push_back(op);
        continue;
      }
      listed[k].cost = kernel_cost(listed[k].calls.size(), costs_.per_op.at(listed[k].target));
      result_.kernels.push_back(std::move(listed[k]));
    }
    return {};
  }

  const PartitionConfig& config_;
  const TargetConstraints& constraints_;
  const bool keep_search_;
  const MockCosts& costs_;
  PartitionSpecPtr host_;
  double unit_;  // the smallest cost of an operator
  std::set<std::string> estimates_;
  MockPartition result_;
};

}  // namespace

Result<MockPartition> partition_with_mock_costs(const Module& module, const PartitionConfig& config,
                                                const TargetConstraints& constraints,
                                                bool keep_search) {
  return MockPartitioner(config, constraints, keep_search).run(module);
}

CompileReport report_of(const MockPartition& partition, const PartitionConfig& config) {
  const MockSearch& search = partition.search;
  CompileReport report;
  for (const PartitionSpecPtr& spec : config.specs) report.targets.push_back(spec->name);
  report_graph(*search.graph, search.candidates, report);
  for (const NamedCover& cover : search.covers)
    report.covers.push_back({cover.name, cover.single_backend, cover.predicted_seconds,
                             std::nullopt, "", &cover == &search.covers[0]});
  ReportedPlan chosen = describe_cover(*search.graph, search.candidates, search.covers.at(0));
  report.kernels = std::move(chosen.kernels);
  report.conversions = std::move(chosen.conversions);
  report_single_backends(*search.graph, search.candidates, search.covers, report);
  report.predicted_seconds = report.isolated_seconds = chosen.predicted_seconds;
  report.lower_bound_seconds = search.lower_bound_seconds;
  report.exact = search.exact;
  report.search_states = search.states;
  report.searches = search.counts;
  report.candidates = partition.candidates;
  report.functions = partition.estimates;
  report.partitioned = partition.module;
  return report;
}

Result<MockPartition> partition_without_costs(const Module& module,
                                              const std::vector<PartitionSpecPtr>& specs,
                                              const TargetConstraints& constraints) {
  MockPartition result;
  result.costs = "none";
  result.module = module;
  for (const auto& [name, function] : module.functions) {
    if (function->attrs.has("Primitive")) continue;
    DataflowGraph graph(untangle_tuples(function));
    std::vector<CandidatePartition> found = gather_candidates(graph, specs, constraints);
    result.candidates += found.size();
    std::vector<CandidatePartition> kernels = partition_lightly(graph, std::move(found));
    result.kept += kernels.size();
    std::vector<ListedKernel> listed =
        TRY(rewrite_and_list(graph, kernels, ConstantsInside::kAll, name, result.module,
                             [](const PartitionSpec& spec) { return spec.target.to_string(); }));
    std::move(listed.begin(), listed.end(), std::back_inserter(result.kernels));
  }
  return result;
}

Result<Module> load_text_as_is(const std::filesystem::path& path,
                               std::unordered_set<const void*>& unknown) {
  ParseOptions options;
  options.constant = [&](const TensorType& type, size_t) -> Result<Tensor> {
    Tensor value = TRY(Tensor::allocate(type.dtype, type.shape));
    unknown.insert(value.raw());
    return value;
  };
  Module module = TRY(load_module(path, options));
  if (module.functions.count("main") == 0)
    return bad_model("{}: there is no function @main", path.string());
  return module;
}

}  // namespace collage
