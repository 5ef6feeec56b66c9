// With mock costs pruning loses nothing: on random graphs, rules and costs the cheapest cover of
// what is kept costs as much as the cheapest of all candidates.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/backends.h"
#include "ir/text_printer.h"
#include "partition/config.h"
#include "partition/prune.h"
#include "search/search.h"

namespace collage {
namespace {

struct Costs {
  double hook, llvm, benefit;
};

double cheapest(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                const Costs& costs) {
  SearchProblem problem;
  problem.graph = &graph;
  problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) { return 0; };
  for (const CandidatePartition& candidate : candidates) {
    const SubGraph& sub_graph = candidate.sub_graph;
    double cost = 0, next = candidate.spec->name == "hook" ? costs.hook : costs.llvm;
    sub_graph.inside().for_each([&](PostDfsIndex i) {
      if (as<CallNode>(graph.node(i).expr) == nullptr) return;
      cost += next;
      next *= costs.benefit;
    });
    Variant variant = Variant::plain("mock", sub_graph.extract(graph));
    problem.candidates.push_back({&candidate, {{std::move(variant), cost}}});
  }
  SearchOptions options;
  options.top_k = 1;
  Result<SearchResult> found = search_covers(problem, options);
  EXPECT_TRUE(found.ok()) << found.status().to_string();
  if (!found) return -1;
  EXPECT_TRUE(found->exact);
  return found->covers[0].seconds;
}

TEST(Pruning, LosesNothingByMockCosts) {
  register_all();
  size_t all = 0, kept = 0;
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    std::mt19937_64 rng(seed);
    PartitionConfig config = *parse_config(fmt::format(R"({{"targets": [
            {{"name": "hook", "compiler": "hook",
              "rule": {{"operators": ["nn.relu", "add"], "combine": "any", "max_depth": {}}}}},
            {{"name": "llvm", "rule": {{"native": true, "max_depth": {}}}}}]}})",
                                                       1 + rng() % 6, 1 + rng() % 6),
                                           "config");
    Expr x = make_var("x", TensorType{{4, 4}, DType::kFloat32});
    std::vector<Expr> values = {x};
    auto pick = [&] {
      return values[values.size() - 1 - rng() % std::min<size_t>(values.size(), 4)];
    };
    for (size_t i = 4 + rng() % 14; i > 0; --i) {
      static constexpr const char* kUnary[] = {"abs", "exp", "nn.relu", "nn.relu"};
      size_t kind = rng() % 5;
      values.push_back(kind == 4 ? *make_call("add", {pick(), pick()})
                                 : *make_call(kUnary[kind], {pick()}));
    }
    Expr body = values.back();
    if (rng() % 2) body = make_tuple({body, values[values.size() / 2 + 1]});
    DataflowGraph graph(make_function({x}, body));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph.function()));
    Costs costs{0.6 + 0.2 * static_cast<double>(rng() % 8), 1,
                0.7 + 0.1 * static_cast<double>(rng() % 4)};
    std::vector<CandidatePartition> candidates = gather_candidates(graph, config.specs);
    std::vector<CandidatePartition> fewer = prune_candidates(graph, candidates);
    EXPECT_NEAR(cheapest(graph, fewer, costs), cheapest(graph, candidates, costs), 1e-9);
    all += candidates.size();
    kept += fewer.size();
  }
  EXPECT_LT(kept, all);
}

}  // namespace
}  // namespace collage
