// Matrix products: with constant weights, of two computed tensors, in batches, transposed.
#include <gmock/gmock.h>

#include "backend/onednn/check.h"

namespace collage::testing {
namespace {

using ::testing::Contains;

struct Dense {
  Shape data;
  int64_t units;
};
class DenseLayers : public ::testing::TestWithParam<Dense> {};

TEST_P(DenseLayers, AloneAndWithBiasActivationAndResidual) {
  const auto& [data, units] = GetParam();
  {
    Graph graph;
    Expr y = graph.call("nn.dense", {graph.input(data), graph.constant({units, data.back()})});
    check(graph.function(y));
  }
  Graph graph;
  Expr y = graph.call("nn.dense", {graph.input(data), graph.constant({units, data.back()}, 0.1)});
  y = graph.call("add", {y, graph.constant({units})});
  y = graph.call("nn.gelu", {y}, {{"approximate", std::string("tanh")}});
  y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
  check(graph.function(y));
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenseLayers,
                         ::testing::Values(Dense{{1, 64}, 32}, Dense{{1, 77}, 1}, Dense{{1, 1}, 19},
                                           Dense{{5, 33}, 17}, Dense{{64, 128}, 96},
                                           Dense{{2, 7, 40}, 24}, Dense{{40}, 12},
                                           Dense{{1, 2048}, 1000}, Dense{{128, 768}, 64}));

struct Matmul {
  Shape left, right;
  bool transpose_left = false, transpose_right = false, constant = false;
};
class Matmuls : public ::testing::TestWithParam<Matmul> {};

TEST_P(Matmuls, MatchTheReference) {
  const Matmul& m = GetParam();
  Graph graph;
  Expr a = graph.input(m.left);
  Expr b = m.constant ? graph.constant(m.right) : graph.input(m.right);
  Expr y = graph.call("nn.matmul", {a, b},
                      {{"transpose_a", m.transpose_left}, {"transpose_b", m.transpose_right}});
  y = graph.call("multiply", {y, graph.scalar(0.125f)});
  check(graph.function(y));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Matmuls,
    ::testing::Values(Matmul{{8, 16}, {16, 24}}, Matmul{{8, 16}, {24, 16}, false, true},
                      Matmul{{16, 8}, {16, 24}, true}, Matmul{{16, 8}, {24, 16}, true, true},
                      Matmul{{8, 16}, {16, 24}, false, false, true},
                      Matmul{{1, 16}, {16, 24}, false, false, true},
                      Matmul{{16, 8}, {16, 24}, true, false, true},
                      Matmul{{3, 4, 64, 32}, {3, 4, 32, 64}},
                      Matmul{{2, 12, 64, 64}, {2, 12, 64, 64}, false, true},
                      Matmul{{4, 40, 8}, {1, 8, 9}}, Matmul{{1, 40, 8}, {4, 8, 9}},
                      Matmul{{4, 5, 8}, {8, 9}}, Matmul{{2, 3, 5, 7}, {7, 2}, false, false, true},
                      Matmul{{3, 6, 5}, {3, 5, 4}, false, false, true}));

TEST(Product, AddsAMaskThatIsBroadcastOverHeads) {
  Graph graph;
  Expr y = graph.call("nn.matmul", {graph.input({1, 4, 33, 16}), graph.input({1, 4, 16, 33})});
  y = graph.call("multiply", {y, graph.scalar(0.25f)});
  y = graph.call("add", {y, graph.constant({1, 1, 33, 33})});
  check(graph.function(y));
}

TEST(Product, OffersWeightsWithRowsContiguousForOneRow) {
  Graph graph;
  Expr y = graph.call("nn.dense", {graph.input({1, 256}), graph.constant({256, 256})});
  Checked checked = check(graph.function(y));
  EXPECT_THAT(checked.names, Contains("rows"));
  EXPECT_THAT(checked.names, Contains("packed"));
}

struct Attention {
  Shape q;
  int64_t keys, values;
  bool causal;
  Shape mask = {};
};
class Attentions : public ::testing::TestWithParam<Attention> {};

TEST_P(Attentions, MatchTheReference) {
  const Attention& a = GetParam();
  Graph graph;
  Shape k = a.q, v = a.q;
  k[k.size() - 2] = v[v.size() - 2] = a.keys;
  v.back() = a.values;
  std::vector<Expr> args = {graph.input(a.q), graph.input(k), graph.input(v)};
  if (!a.mask.empty()) args.push_back(graph.input(a.mask));
  Expr y = graph.call("nn.attention", args, {{"scale", 0.125}, {"causal", a.causal}});
  check(graph.function(y));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attentions,
    ::testing::Values(
        Attention{{1, 4, 64, 64}, 64, 64, false}, Attention{{2, 3, 17, 24}, 33, 40, false},
        Attention{{1, 2, 200, 64}, 200, 64, true}, Attention{{3, 128, 32}, 128, 32, true},
        Attention{{1, 2, 130, 16}, 70, 48, false}, Attention{{1, 2, 256, 64}, 256, 64, true},
        Attention{{1, 2, 40, 16}, 40, 16, false, {1, 2, 1, 40}},
        Attention{{1, 2, 129, 16}, 129, 16, false, {1, 1, 129, 129}},
        Attention{{1, 2, 129, 16}, 129, 16, false, {1, 1, 1, 129}},
        Attention{{40, 16}, 24, 16, false}));

TEST(Attention, KeepsScoresOfManyQueriesInBlocks) {
  if (__builtin_cpu_supports("avx512f") == 0)
    GTEST_SKIP() << "without AVX-512 oneDNN packs the keys of a block otherwise than all keys";
  Graph graph;
  Shape shape = {1, 2, 256, 32};
  Expr y = graph.call("nn.attention", {graph.input(shape), graph.input(shape), graph.input(shape)},
                      {{"scale", 0.2}, {"causal", true}});
  EXPECT_THAT(check(graph.function(y)).names, Contains("rows64"));
}

TEST(Product, RefusesBatchesBroadcastInPart) {
  Graph graph;
  Expr y = graph.call("nn.matmul", {graph.input({2, 3, 4, 5}), graph.input({2, 1, 5, 4})});
  EXPECT_NE(refusal(graph.function(y)), "");
}

}  // namespace
}  // namespace collage::testing
