// Convolutions of every kind, with the chains that may follow them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "backend/onednn/check.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Convolutions : public ::testing::TestWithParam<Conv> {};

TEST_P(Convolutions, AloneAndWithBiasReluAndResidual) {
  {
    Graph graph;
    check(graph.function(conv(graph, GetParam())), 5e-5);
  }
  Graph graph;
  Expr y = conv(graph, GetParam());
  y = graph.call("nn.bias_add", {y, graph.constant({GetParam().outputs})});
  y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
  y = graph.call("nn.relu", {y});
  check(graph.function(y), 5e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolutions,
    ::testing::Values(
        Conv{{1, 16, 14, 14}, 16, {3, 3}, {}, {1, 1, 1, 1}},
        Conv{{2, 5, 9, 11}, 7, {3, 3}, {}, {1, 1, 1, 1}},             // odd channels, a batch
        Conv{{1, 1, 12, 12}, 8, {5, 5}, {}, {2, 2, 2, 2}},            // one channel
        Conv{{1, 3, 33, 31}, 32, {7, 7}, {2, 2}, {3, 3, 3, 3}},       // a stem
        Conv{{1, 32, 10, 10}, 1, {1, 1}},                             // one output channel
        Conv{{3, 24, 8, 8}, 48, {1, 1}, {2, 2}},                      // pointwise with strides
        Conv{{1, 64, 1, 1}, 16, {1, 1}},                              // no spatial extent
        Conv{{1, 16, 15, 15}, 32, {3, 3}, {2, 2}, {0, 0, 1, 1}},      // asymmetric padding
        Conv{{1, 16, 9, 12}, 24, {3, 2}, {1, 2}, {1, 0, 0, 1}},       // everything differs
        Conv{{1, 32, 16, 16}, 32, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}},  // dilation
        Conv{{1, 12, 7, 7}, 20, {3, 3}, {}, {4, 4, 4, 4}, {4, 4}},
        Conv{{1, 128, 8, 8}, 128, {3, 3}, {}, {1, 1, 1, 1}, {}, 32},  // groups of 4
        Conv{{1, 24, 8, 8}, 36, {3, 3}, {}, {1, 1, 1, 1}, {}, 3},     // groups of odd widths
        Conv{{1, 10, 8, 8}, 20, {3, 3}, {}, {1, 1, 1, 1}, {}, 10},    // depthwise times two
        Conv{{2, 32, 13, 13}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 32},
        Conv{{1, 17, 9, 9}, 17, {5, 5}, {}, {2, 2, 2, 2}, {}, 17},  // depthwise, odd
        Conv{{1, 16, 40}, 24, {3}, {}, {1, 1}},                     // one dimension
        Conv{{2, 7, 33}, 5, {5}, {2}, {2, 1}}, Conv{{1, 16, 40}, 16, {3}, {}, {2, 2}, {2}, 16},
        Conv{{1, 16, 3, 14, 14}, 32, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}},  // three dimensions
        Conv{{1, 16, 1, 7, 7}, 16, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}},
        Conv{{1, 5, 4, 6, 6}, 9, {1, 3, 3}, {2, 2, 2}, {0, 1, 1, 0, 1, 1}},
        Conv{{1, 48, 13, 13}, 255, {1, 1}}));

TEST(Convolution, OffersWinogradOnlyWhereItIs) {
  Graph graph;
  Checked plain =
      check(graph.function(conv(graph, {{1, 32, 14, 14}, 32, {3, 3}, {}, {1, 1, 1, 1}})), 5e-5);
  EXPECT_THAT(plain.names, Contains("direct"));
  if (__builtin_cpu_supports("avx512f") == 0)
    GTEST_SKIP() << "oneDNN's Winograd convolutions need AVX-512";
  EXPECT_THAT(plain.names, Contains("winograd2"));
  Graph strided;
  Checked other = check(
      strided.function(conv(strided, {{1, 32, 14, 14}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}})), 5e-5);
  EXPECT_THAT(other.names, Not(Contains("winograd2")));
}

TEST(Convolution, IsOfferedChannelsLastAndBlocked) {
  Graph graph;
  Checked checked = check(graph.function(conv(graph, {{1, 32, 8, 8}, 32, {1, 1}})));
  EXPECT_THAT(checked.layouts, Contains("acdb"));
  EXPECT_THAT(checked.layouts, Contains(::testing::StartsWith("aBcd")));
}

TEST(Convolution, ReadsPlainImagesIntoBlocks) {
  Graph graph;
  Checked checked =
      check(graph.function(conv(graph, {{1, 3, 32, 32}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}})));
  EXPECT_THAT(checked.variants, Contains(HasSubstr("direct(float32)->(float32:aBcd")));
}

// What follows a convolution, as a function from its result.
using Follow = std::function<Expr(Graph&, Expr)>;
struct Chain {
  const char* name;
  Follow follow;
};
Follow unary(std::string op, Attrs attrs = {}) {
  return [=](Graph& graph, Expr x) { return graph.call(op, {x}, attrs); };
}
class Chains : public ::testing::TestWithParam<Chain> {};

TEST_P(Chains, FollowConvolutionsAndTransposedOnes) {
  for (int64_t channels : {16, 19}) {
    Graph graph;
    Expr y = conv(graph, {{2, 16, 10, 10}, channels, {3, 3}, {}, {1, 1, 1, 1}});
    check(graph.function(GetParam().follow(graph, y)), 5e-5);
    Graph strided;
    y = conv(strided, {{1, 8, 10, 10}, channels, {3, 3}, {2, 2}, {1, 1, 1, 1}});
    check(strided.function(GetParam().follow(strided, y)), 5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Steps, Chains,
    ::testing::Values(Chain{"relu", unary("nn.relu")},
                      Chain{"leaky", unary("nn.leaky_relu", {{"alpha", 0.1}})},
                      Chain{"relu6", unary("clip", {{"a_min", 0.0}, {"a_max", 6.0}})},
                      Chain{"sigmoid", unary("sigmoid")}, Chain{"tanh", unary("tanh")},
                      Chain{"silu", unary("nn.silu")},
                      Chain{"gelu_tanh", unary("nn.gelu", {{"approximate", std::string("tanh")}})},
                      Chain{"elu", unary("nn.elu")}, Chain{"hard_swish", unary("nn.hard_swish")},
                      Chain{"hard_sigmoid", unary("nn.hard_sigmoid")},
                      Chain{"mish", unary("nn.mish")}, Chain{"exp", unary("exp")},
                      Chain{"abs", unary("abs")},
                      Chain{"scale_and_shift",
                            [](Graph& graph, Expr x) {
                              int64_t c = x->tensor_type().shape[1];
                              x = graph.call("multiply", {x, graph.constant({c, 1, 1})});
                              return graph.call("add", {graph.constant({1, c, 1, 1}), x});
                            }},
                      Chain{"numbers",
                            [](Graph& graph, Expr x) {
                              x = graph.call("multiply", {graph.scalar(0.3f), x});
                              x = graph.call("subtract", {graph.scalar(1.f), x});
                              x = graph.call("maximum", {x, graph.scalar(-0.5f)});
                              return graph.call("minimum", {x, graph.scalar(2.f)});
                            }},
                      Chain{"leaky_then_residual",
                            [](Graph& graph, Expr x) {
                              x = graph.call("nn.leaky_relu", {x}, {{"alpha", 0.1}});
                              return graph.call("add", {x, graph.input(x->tensor_type().shape)});
                            }},
                      Chain{"residual_on_the_left",
                            [](Graph& graph, Expr x) {
                              return graph.call("add", {graph.input(x->tensor_type().shape), x});
                            }},
                      Chain{"gate_per_channel",
                            [](Graph& graph, Expr x) {
                              const Shape& s = x->tensor_type().shape;
                              return graph.call("multiply", {x, graph.input({s[0], s[1], 1, 1})});
                            }},
                      Chain{"one_channel_map",
                            [](Graph& graph, Expr x) {
                              const Shape& s = x->tensor_type().shape;
                              return graph.call("add", {x, graph.constant({s[2], s[3]})});
                            }}),
    [](const auto& info) { return info.param.name; });

TEST(Convolution, AddsItsOwnInput) {
  Graph graph;
  Expr x = graph.input({1, 16, 9, 9});
  Expr y =
      graph.call("nn.conv2d", {x, graph.constant({16, 16, 3, 3})}, {{"padding", Ints{1, 1, 1, 1}}});
  check(graph.function(graph.call("add", {y, x})), 5e-5);
}

TEST(Convolution, DoesNotFuseInaccurateGelu) {
  Graph graph;
  Expr y = conv(graph, {{1, 16, 8, 8}, 16, {3, 3}});
  EXPECT_THAT(refusal(graph.function(graph.call("nn.gelu", {y}))), HasSubstr("gelu"));
}

TEST(Convolution, TakesComputedWeights) {
  struct Case {
    const char* op;
    Shape source, weights;
    int64_t groups = 1;
  };
  for (const Case& one : {Case{"nn.conv2d", {1, 16, 9, 9}, {32, 16, 3, 3}},
                          {"nn.conv2d", {2, 5, 8, 7}, {7, 5, 1, 1}},
                          {"nn.conv2d", {1, 12, 8, 8}, {18, 4, 3, 3}, 3},
                          {"nn.conv2d", {1, 32, 8, 8}, {32, 1, 3, 3}, 32},
                          {"nn.conv1d", {1, 6, 20}, {4, 6, 5}},
                          {"nn.conv3d", {1, 4, 4, 6, 6}, {8, 4, 2, 2, 2}},
                          {"nn.conv2d_transpose", {1, 8, 5, 5}, {8, 6, 3, 3}},
                          {"nn.conv2d_transpose", {1, 12, 5, 5}, {12, 2, 3, 3}, 3}}) {
    SCOPED_TRACE(fmt::format("{} {} groups {}", one.op, one.weights.size(), one.groups));
    Graph graph;
    Expr y = graph.call(one.op, {graph.input(one.source), graph.input(one.weights)},
                        {{"groups", one.groups}});
    y = graph.call("nn.bias_add", {y, graph.constant({y->tensor_type().shape[1]})});
    check(graph.function(graph.call("nn.relu", {y})), 5e-5);
  }
}

class TransposedConvolutions : public ::testing::TestWithParam<TransposedConv> {};

TEST_P(TransposedConvolutions, MatchTheReference) {
  Graph graph;
  Expr y = transposed_conv(graph, GetParam());
  y = graph.call("nn.bias_add", {y, graph.constant({GetParam().conv.outputs})});
  check(graph.function(graph.call("nn.relu", {y})), 5e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposedConvolutions,
    ::testing::Values(TransposedConv{{{1, 16, 8, 8}, 32, {4, 4}, {2, 2}, {1, 1, 1, 1}}},
                      TransposedConv{{{2, 5, 7, 6}, 3, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {1, 1}},
                      TransposedConv{{{1, 8, 5, 5}, 8, {3, 3}, {}, {0, 1, 0, 1}}},
                      TransposedConv{{{1, 12, 5, 5}, 6, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 3}},
                      TransposedConv{{{1, 16, 5, 5}, 16, {4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 16}},
                      TransposedConv{{{1, 6, 9}, 4, {4}, {2}, {1, 1}}},
                      TransposedConv{{{1, 4, 3, 4, 4}, 5, {2, 2, 2}, {2, 2, 2}}}));

}  // namespace
}  // namespace collage::testing
