// Groups as candidates hold them: products and convolutions with what follows and what they read,
// attention, statistics, lookups; what is refused.
#include <gmock/gmock.h>

#include "check.h"
#include "ir/type.h"

namespace collage::opencl {
namespace {

using testing::Graph;

TEST(OpenClGroups, ConvolutionWithBiasAdditionAndClip) {
  REQUIRE_DEVICE();
  for (const testing::Conv& conv :
       {testing::Conv{{1, 16, 14, 14}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}},
        testing::Conv{{2, 3, 19, 17}, 8, {7, 7}, {2, 2}, {3, 3, 3, 3}},
        testing::Conv{{1, 24, 7, 7}, 20, {1, 1}},
        testing::Conv{{1, 12, 9, 10}, 12, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 12},
        testing::Conv{{1, 8, 11, 6}, 12, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 4}}) {
    Graph graph;
    Expr out = testing::conv(graph, conv);
    out = graph.call("add", {out, graph.constant({conv.outputs, 1, 1})});
    out = graph.call("add", {out, graph.input(out->tensor_type().shape)});
    out = graph.call("clip", {out}, {{"a_min", -1.0}, {"a_max", 1.5}});
    check_function(graph.function(out));
  }
}

TEST(OpenClGroups, ProductWithPrologueAndEpilogue) {
  REQUIRE_DEVICE();
  Graph graph;
  const Expr a = graph.call("nn.relu", {graph.input({2, 33, 40})});
  Expr out = graph.call("nn.dense", {a, graph.constant({50, 40})});
  out = graph.call("nn.gelu", {graph.call("add", {out, graph.constant({50})})});
  check_function(graph.function(out));
}

TEST(OpenClGroups, ProductOfTwoInputs) {
  REQUIRE_DEVICE();
  for (const bool transposed : {false, true}) {
    Graph graph;
    const Shape b = transposed ? Shape{3, 21, 16} : Shape{3, 16, 21};
    const Expr out = graph.call("nn.batch_matmul", {graph.input({3, 10, 16}), graph.input(b)},
                                {{"transpose_a", false}, {"transpose_b", transposed}});
    check_function(graph.function(out));
  }
}

TEST(OpenClGroups, AttentionWithMask) {
  REQUIRE_DEVICE();
  for (const bool causal : {false, true}) {
    Graph graph;
    const Expr q = graph.input({2, 4, 18, 16}), k = graph.input({2, 4, 18, 16}),
               v = graph.input({2, 4, 18, 24}), mask = graph.input({2, 1, 1, 18});
    const Expr out =
        graph.call("nn.attention", {q, k, v, mask}, {{"scale", 0.25}, {"causal", causal}});
    check_function(graph.function(graph.call("transpose", {out}, {{"axes", Ints{0, 2, 1, 3}}})));
  }
}

TEST(OpenClGroups, LayerNormBehindAnAddition) {
  REQUIRE_DEVICE();
  Graph graph;
  const Expr sum = graph.call("add", {graph.input({7, 130}), graph.input({7, 130})});
  check_function(graph.function(graph.call("nn.layer_norm",
                                           {sum, graph.constant({130}), graph.constant({130})},
                                           {{"axis", int64_t{-1}}, {"epsilon", 1e-5}})));
}

TEST(OpenClGroups, RowsOfATableAtIndicesOfEitherSign) {
  REQUIRE_DEVICE();
  Graph graph;
  const Expr indices = graph.input({2, 3}, DType::kInt64);
  const Expr out = graph.call(
      "multiply", {graph.call("take", {graph.constant({9, 20}), indices}, {{"axis", int64_t{0}}}),
                   graph.scalar(2.0f)});
  Tensor given = Tensor::empty(DType::kInt64, {2, 3});
  for (int64_t i = 0; i < given.size(); ++i) given.data<int64_t>()[i] = i * 3 - 8;
  check_with_inputs(graph.function(out), {given});
}

TEST(OpenClGroups, OtherFloatsAreRefusedWithTheReason) {
  REQUIRE_DEVICE();
  Graph graph;
  const Expr x = graph.input({4, 4}, DType::kFloat64);
  const auto variants = staged_backend().variants(graph.function(graph.call("nn.relu", {x})),
                                                  first_device(), {2, ""});
  ASSERT_FALSE(variants.ok());
  EXPECT_THAT(variants.status().message(), ::testing::HasSubstr("float64"));
}

}  // namespace
}  // namespace collage::opencl
