// Problems of the size of real models and beyond.
#include <gtest/gtest.h>

#include "search/fixture.h"
#include "search/synthetic.h"

namespace collage {
namespace {

// Sizes and shapes of real models: the search must end with a cover and a bound close to it.
TEST(Search, ScalesToLargeModels) {
  for (const std::string& text : {SyntheticProblem::nasnet(8), SyntheticProblem::nasrnn(3)}) {
    SyntheticProblem synthetic(text, 2);
    SearchResult result = *search_covers(synthetic.problem());
    EXPECT_LE(result.covers[0].seconds, 1.002 * result.lower_bound);
    EXPECT_GE(result.covers.size(), 4u);
    size_t covered = 0;
    for (const Cover::Kernel& kernel : result.covers[0].kernels)
      synthetic.problem().candidates[kernel.candidate].candidate->sub_graph.inside().for_each(
          [&](PostDfsIndex i) { covered += node_role(synthetic.graph(), i) == NodeRole::kKernel; });
    size_t kernels = 0;
    for (const DataflowGraph::Node& node : synthetic.graph().nodes())
      kernels += node_role(node.expr) == NodeRole::kKernel;
    EXPECT_EQ(covered, kernels);
  }
}

// A chain of that many operators, each a kernel of its own.
TEST(Search, HasNoLimitOnKernels) {
  constexpr size_t kOperators = 70'000;
  register_tiny_ops();
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  Expr last = x;
  for (size_t i = 0; i < kOperators; ++i) last = *make_call("relu", {last});
  const DataflowGraph graph(make_function({x}, last));
  const auto spec =
      std::make_shared<PartitionSpec>(PartitionSpec{"t", nullptr, Target{"t", {}, {}}});
  std::deque<CandidatePartition> candidates;
  SearchProblem problem;
  problem.graph = &graph;
  for (PostDfsIndex i = 0; i < graph.size(); ++i) {
    if (node_role(graph, i) != NodeRole::kKernel) continue;
    candidates.push_back({"test", SubGraph::of(graph, IndexSet({i})), spec});
    problem.candidates.push_back(
        {&candidates.back(), {{Variant{"v", {encoding("")}, {encoding("")}}, 1}}});
  }
  SearchOptions options;
  options.top_k = 1;
  const SearchResult result = *search_covers(problem, options);
  EXPECT_EQ(result.covers[0].kernels.size(), kOperators);
  EXPECT_EQ(result.covers[0].seconds, kOperators);
  EXPECT_TRUE(result.exact);
}

TEST(Search, HasNoLimitOnCandidates) {
  constexpr size_t kCandidates = 70'000;
  Fixture f("x; a = conv(x, c1); b = relu(a); return b");
  const auto spec =
      std::make_shared<PartitionSpec>(PartitionSpec{"t", nullptr, Target{"t", {}, {}}});
  for (size_t i = 0; i < kCandidates; ++i) {
    f.candidates.push_back({"test", SubGraph::of(f.g.graph(), f.g.set({i % 2 ? "a" : "b"})), spec});
    f.problem.candidates.push_back({&f.candidates.back(),
                                    {{Variant{"v", {encoding("")}, {encoding("")}},
                                      2 + static_cast<double>(kCandidates - i)}}});
  }
  const SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "t: a | t: b");
  EXPECT_EQ(result.covers[0].seconds, 3 + 4);
  EXPECT_TRUE(result.exact);
}

TEST(Search, HasNoLimitOnEncodings) {
  Fixture f("x; a = conv(x, c1); b = relu(a); return b");
  f.add("t", {"a"}, 2);
  f.add("t", {"b"}, 2);
  for (int block = 2; block < 50; ++block) {
    const std::string layout = "A" + std::to_string(block) + "a";
    f.add("t", {"a"}, 3 - 0.02 * block, {""}, {layout});
    f.add("t", {"b"}, 1, {layout}, {""});
  }
  f.problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) { return 9; };
  const SearchResult result = *search_covers(f.problem);
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 3 - 0.02 * 49 + 1);
  EXPECT_TRUE(result.exact);
}

}  // namespace
}  // namespace collage
