// Pruning loses nothing: on random graphs, rules and costs the cheapest cover of what is kept costs
// as much as the cheapest of all candidates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "ir/text_printer.h"
#include "partition/config.h"
#include "partition/prune.h"
#include "search/search.h"

namespace collage {
namespace {

using ::testing::UnorderedElementsAre;

using CostOf = std::function<double(const CandidatePartition&)>;

size_t count_calls(const DataflowGraph& graph, const SubGraph& sub_graph) {
  size_t calls = 0;
  sub_graph.inside().for_each(
      [&](PostDfsIndex i) { calls += as<CallNode>(graph.node(i).expr) != nullptr; });
  return calls;
}

double cheapest(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                const CostOf& cost_of) {
  SearchProblem problem;
  problem.graph = &graph;
  problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) { return 0; };
  for (const CandidatePartition& candidate : candidates) {
    Variant variant = Variant::plain("mock", candidate.sub_graph.extract(graph));
    problem.candidates.push_back({&candidate, {{std::move(variant), cost_of(candidate)}}});
  }
  SearchOptions options;
  options.top_k = 1;
  Result<SearchResult> found = search_covers(problem, options);
  EXPECT_TRUE(found.ok()) << found.status().to_string();
  if (!found) return -1;
  EXPECT_TRUE(found->exact);
  return found->covers[0].seconds;
}

PartitionConfig two_targets(const std::string& operators, size_t hook_depth, size_t llvm_depth) {
  return *parse_config(fmt::format(R"json({{"targets": [
            {{"name": "hook", "compiler": "hook",
              "rule": "combine(is_op({}), joins: any, max_depth: {})"}},
            {{"name": "llvm", "rule": "combine(is_op_up_to('anchor'), max_depth: {})"}}]}})json",
                                   operators, hook_depth, llvm_depth),
                       "config");
}

// Up to 17 calls of these operators, additions among them.
Function random_function(std::mt19937_64& rng, const std::vector<std::string>& unary) {
  Expr x = make_var("x", TensorType{{4, 4}, DType::kFloat32});
  std::vector<Expr> values = {x};
  auto pick = [&] {
    return values[values.size() - 1 - rng() % std::min<size_t>(values.size(), 4)];
  };
  for (size_t i = 4 + rng() % 14; i > 0; --i) {
    size_t kind = rng() % (unary.size() + 1);
    values.push_back(kind == unary.size() ? *make_call("add", {pick(), pick()})
                                          : *make_call(unary[kind], {pick()}));
  }
  Expr body = values.back();
  if (rng() % 2) body = make_tuple({body, values[values.size() / 2 + 1]});
  return make_function({x}, body);
}

TEST(Pruning, LosesNothingByMockCosts) {
  register_all();
  size_t all = 0, kept = 0;
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    std::mt19937_64 rng(seed);
    const size_t hook_depth = 1 + rng() % 6, llvm_depth = 1 + rng() % 6;
    PartitionConfig config = two_targets("'nn.relu', 'add'", hook_depth, llvm_depth);
    DataflowGraph graph(random_function(rng, {"abs", "exp", "nn.relu", "nn.relu"}));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph.function()));
    const double hook = 0.6 + 0.2 * static_cast<double>(rng() % 8);
    const double benefit = 0.7 + 0.1 * static_cast<double>(rng() % 4);
    auto cost_of = [&](const CandidatePartition& candidate) {
      double cost = 0, next = candidate.spec->name == "hook" ? hook : 1;
      for (size_t k = count_calls(graph, candidate.sub_graph); k > 0; --k, next *= benefit)
        cost += next;
      return cost;
    };
    std::vector<CandidatePartition> candidates = gather_candidates(graph, config.specs);
    std::vector<CandidatePartition> fewer = prune_candidates(graph, candidates);
    EXPECT_NEAR(cheapest(graph, fewer, cost_of), cheapest(graph, candidates, cost_of), 1e-9);
    all += candidates.size();
    kept += fewer.size();
  }
  EXPECT_LT(kept, all);
}

// Costs as measured ones may be: arbitrary, but that element-wise kernels of one target never lose
// against smaller ones.
TEST(Pruning, OfDominatedCandidatesLosesNothingByArbitraryCosts) {
  register_all();
  size_t all = 0, gone = 0;
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    std::mt19937_64 rng(seed);
    // The other target takes nothing of some graphs, and little of others.
    const char* operators = rng() % 2 ? "'tanh'" : "'nn.relu'";
    const size_t hook_depth = 1 + rng() % 3, llvm_depth = 1 + rng() % 6;
    PartitionConfig config = two_targets(operators, hook_depth, llvm_depth);
    DataflowGraph graph(random_function(rng, {"abs", "exp", "exp", "nn.relu", "transpose"}));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph.function()));
    std::map<std::string, double> drawn;
    auto cost_of = [&](const CandidatePartition& candidate) {
      auto calls = static_cast<double>(count_calls(graph, candidate.sub_graph));
      if (fusion_never_loses(candidate)) return 0.5 + 0.5 * calls;
      auto [it, inserted] =
          drawn.try_emplace(candidate.spec->name + candidate.sub_graph.inside().to_string(), 0.0);
      if (inserted) it->second = calls * (0.3 + 0.01 * static_cast<double>(rng() % 150));
      return it->second;
    };
    std::vector<CandidatePartition> candidates = gather_candidates(graph, config.specs), pruned;
    std::vector<CandidatePartition> fewer = prune_dominated(graph, candidates, pruned);
    EXPECT_EQ(fewer.size() + pruned.size(), candidates.size());
    EXPECT_NEAR(cheapest(graph, fewer, cost_of), cheapest(graph, candidates, cost_of), 1e-9);
    all += candidates.size();
    gone += pruned.size();
  }
  EXPECT_GT(gone, all / 50);
}

TEST(Pruning, OfDominatedCandidatesIsForOwnKernelsOfOneTarget) {
  register_all();
  Expr x = make_var("x", TensorType{{4, 4}, DType::kFloat32});
  Expr chain = *make_call("exp", {*make_call("abs", {*make_call("nn.relu", {x})})});
  DataflowGraph graph(make_function({x}, chain));
  auto left = [&](const char* operators, bool own) {
    PartitionConfig config = two_targets(operators, 1, 8);
    auto llvm = std::make_shared<PartitionSpec>(*config.specs[1]);
    if (!own) llvm->compiler = "somebody's";
    config.specs[1] = llvm;
    std::vector<CandidatePartition> pruned;
    return prune_dominated(graph, gather_candidates(graph, config.specs), pruned).size();
  };
  EXPECT_EQ(left("'tanh'", false), 6u) << "three alone, two pairs, all of them";
  EXPECT_EQ(left("'tanh'", true), 1u) << "all of them";
  // Another target takes the last one. All that holds exp stays, and what a kernel of abs and exp
  // leaves of the pair before it: relu. Beside abs alone, relu would be in the pair.
  EXPECT_EQ(left("'exp'", true), 1u + 6u - 1u) << "all but abs alone";
}

// Of native's kernels behind a convolution of somebody else.
TEST(Pruning, OfDominatedCandidatesLeavesTheTailsWhereToolchainsCanMeet) {
  register_all();
  Expr x = make_var("x", TensorType{{1, 4, 8, 8}, DType::kFloat32});
  Expr w = make_var("w", TensorType{{4, 4, 1, 1}, DType::kFloat32});
  Expr value = *make_call("nn.conv2d", {x, w});
  for (const char* op : {"exp", "tanh", "nn.relu"}) value = *make_call(op, {value});
  DataflowGraph graph(make_function({x, w}, value));
  auto left = [&](const char* operators) {
    PartitionConfig config = two_targets(operators, 2, 1);
    auto native = std::make_shared<PartitionSpec>(*config.specs[1]);
    native->rule = find_backend("native")->partition_rule(native->target);
    config.specs[1] = native;
    std::vector<CandidatePartition> pruned;
    std::vector<std::string> labels;
    for (const CandidatePartition& candidate :
         prune_dominated(graph, gather_candidates(graph, config.specs), pruned))
      if (candidate.spec == native) labels.push_back(candidate.sub_graph.ops_label(graph));
    return labels;
  };
  EXPECT_THAT(left("'nn.conv2d'"), UnorderedElementsAre("exp+tanh+nn.relu"))
      << "they can meet behind the convolution only";
  EXPECT_THAT(
      left("'nn.conv2d', 'exp'"),
      UnorderedElementsAre("exp", "exp+tanh", "exp+tanh+nn.relu", "tanh+nn.relu", "nn.relu"));
}

}  // namespace
}  // namespace collage
