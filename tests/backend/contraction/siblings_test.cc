// Convolutions and products of one input as one kernel of the matrix unit, with a result each; and
// which of a function's calls are offered as such.
#include <gmock/gmock.h>

#include <random>

#include "backend/contraction/check.h"
#include "partition/candidate.h"

namespace collage::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kFollows = 6;
// What may follow: nothing, a bias, activations, a residual that flows in, the input itself.
Expr followed(Graph& graph, Expr y, const Expr& image, size_t axis, int64_t which) {
  if (which == 0) return y;
  const Shape shape = y->tensor_type().shape;
  y = graph.call("nn.bias_add", {y, graph.constant({shape[axis]})},
                 {{"axis", static_cast<int64_t>(axis)}});
  if (which == 2) return graph.call("nn.relu", {y});
  if (which == 3) return graph.call("nn.gelu", {graph.call("nn.silu", {y})});
  if (which == 4) return graph.call("nn.relu", {graph.call("add", {graph.input(shape), y})});
  if (which == 5 && image->type() == y->type()) return graph.call("add", {y, image});
  return y;
}

// Siblings of these widths, in which something else follows each; `shape.outputs` is none of them.
Function convolutions(Conv shape, const std::vector<int64_t>& widths, uint64_t seed = 1) {
  Graph graph(seed);
  const Expr image = graph.input(shape.source);
  std::vector<Expr> results;
  for (size_t i = 0; i < widths.size(); ++i) {
    shape.outputs = widths[i];
    results.push_back(followed(graph, conv(graph, shape, image), image, 1,
                               static_cast<int64_t>(i + seed) % kFollows));
  }
  return graph.function(make_tuple(results));
}

Function products(const Shape& left, const std::vector<int64_t>& widths, uint64_t seed = 1) {
  Graph graph(seed);
  const Expr image = graph.input(left);
  std::vector<Expr> results;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool transposed = (i + seed) % 3 != 0;
    const Shape right = transposed ? Shape{widths[i], left.back()} : Shape{left.back(), widths[i]};
    const Expr y =
        graph.call("nn.matmul", {image, graph.constant(right, 0.1)}, {{"transpose_b", transposed}});
    results.push_back(
        followed(graph, y, image, left.size() - 1, static_cast<int64_t>(i + seed) % kFollows));
  }
  return graph.function(make_tuple(results));
}

struct Siblings {
  Conv shape;
  std::vector<int64_t> widths;
};
void PrintTo(const Siblings& siblings, std::ostream* os) {
  PrintTo(siblings.shape, os);
  *os << ::testing::PrintToString(siblings.widths);
}
using SiblingConvolutions = ContractionsWith<Siblings>;

TEST_P(SiblingConvolutions, MatchTheReference) {
  for (uint64_t seed : {1, 4}) check_amx(convolutions(GetParam().shape, GetParam().widths, seed));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SiblingConvolutions,
    ::testing::Values(
        Siblings{{{1, 64, 14, 14}, 0, {1, 1}}, {64, 64}},
        Siblings{{{1, 64, 14, 14}, 0, {1, 1}}, {64, 256}},
        Siblings{{{1, 64, 9, 9}, 0, {1, 1}}, {16, 64, 48}},
        Siblings{{{2, 33, 5, 7}, 0, {1, 1}}, {17, 1, 70, 33}},    // none is whole
        Siblings{{{1, 20, 6, 6}, 0, {1, 1}}, {5, 9, 3, 20, 11}},  // a thread has no column of some
        Siblings{{{3, 16, 9, 9}, 0, {1, 1}, {2, 2}}, {40, 24}},
        Siblings{{{1, 32, 9, 11}, 0, {3, 3}, {}, {1, 1, 1, 1}}, {32, 47}},
        Siblings{{{3, 24, 12, 13}, 0, {3, 2}, {2, 1}, {1, 0, 1, 1}}, {24, 30, 18}},
        Siblings{{{1, 16, 13, 13}, 0, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}}, {16, 16}},
        Siblings{{{1, 256, 7, 7}, 0, {3, 3}, {}, {1, 1, 1, 1}}, {160, 300}},  // beyond the cache
        Siblings{{{1, 48, 70, 33}, 0, {1, 1}}, {64, 80}},  // copies of some rows at a time
        Siblings{{{2, 18, 21}, 0, {5}, {2}, {2, 1}}, {18, 34}},
        Siblings{{{1, 17, 4, 5, 6}, 0, {2, 3, 3}, {}, {0, 1, 1, 1, 1, 1}}, {33, 16}}));

TEST_F(Contractions, SiblingConvolutionsOfRandomShapes) {
  std::mt19937 random(22);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < trials(25); ++trial) {
    const int64_t kernel = pick(0, 1) == 0 ? 1 : pick(2, 3), pad = pick(0, kernel - 1);
    const Conv shape{{pick(1, 2), pick(16, 70), pick(6, 15), pick(6, 15)},
                     0,
                     {kernel, kernel},
                     Ints(2, pick(1, 2)),
                     Ints(4, pad)};
    std::vector<int64_t> widths(static_cast<size_t>(pick(2, 5)));
    for (int64_t& width : widths) width = pick(0, 2) == 0 ? shape.source[1] : pick(1, 100);
    SCOPED_TRACE(::testing::PrintToString(Siblings{shape, widths}));
    check_amx(convolutions(shape, widths, trial));
    if (HasFailure()) return;
  }
}

TEST_F(Contractions, SiblingProducts) {
  check_amx(products({128, 64}, {64, 64, 64}));
  check_amx(products({2, 19, 40}, {40, 17, 100, 40}, 2));
  check_amx(products({9, 768}, {768, 768, 768}, 5));  // columns are shared out
  check_amx(products({40, 33}, {1, 33, 2, 49, 16}, 3));
  std::mt19937 random(23);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < trials(25); ++trial) {
    const Shape left = {pick(8, 150), pick(16, 200)};
    std::vector<int64_t> widths(static_cast<size_t>(pick(2, 5)));
    for (int64_t& width : widths) width = pick(0, 2) == 0 ? left[1] : pick(1, 150);
    SCOPED_TRACE(::testing::PrintToString(left) + ::testing::PrintToString(widths));
    check_amx(products(left, widths, trial));
    if (HasFailure()) return;
  }
}

TEST(AmxSiblings, RefusesResultsThatShareNoCopy) {
  Graph graph;
  const Expr x = graph.input({1, 32, 8, 8}), other = graph.input({1, 32, 8, 8});
  const Conv one{{1, 32, 8, 8}, 32, {1, 1}}, three{{1, 32, 8, 8}, 32, {3, 3}},
      groups{{1, 32, 8, 8}, 32, {1, 1}, {}, {}, {}, 2};
  const auto reason = [&](const Expr& a, const Expr& b) {
    return refusal(graph.function(make_tuple({a, b})));
  };
  const auto of = [&](const Expr& image, const Conv& shape) { return conv(graph, shape, image); };
  EXPECT_THAT(reason(of(x, one), of(other, one)), HasSubstr("no siblings"));
  EXPECT_THAT(reason(of(x, one), of(x, three)), HasSubstr("no siblings"));
  EXPECT_THAT(reason(of(x, groups), of(x, groups)), HasSubstr("no siblings"));
  EXPECT_THAT(reason(of(x, one), graph.call("exp", {of(x, one)})), HasSubstr("exp"));
  EXPECT_THAT(reason(of(x, one), x), HasSubstr("no convolution"));
  // Sums of branches are no steps of one.
  const Expr y = of(x, one);
  EXPECT_THAT(reason(y, graph.call("add", {of(x, one), y})), HasSubstr("no siblings"));
}

// The candidates with several results that the rule finds, as the operators inside.
std::vector<std::string> joined(const Function& function) {
  const DataflowGraph graph(function);
  const Target target{"amx", {}, {}};
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"amx", amx_backend().partition_rule(target), target});
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    if (candidate.sub_graph.exit().size() > 1)
      labels.push_back(candidate.sub_graph.ops_label(graph));
  return labels;
}

TEST(AmxSiblings, AreTheProjectionsOfATransformer) {
  Graph graph;
  const Expr x = graph.input({1, 16, 64});
  std::vector<Expr> heads;
  for (int i = 0; i < 3; ++i) {
    Expr y = graph.call("nn.matmul", {x, graph.constant({64, 64})});
    y = graph.call("nn.bias_add", {y, graph.constant({64})}, {{"axis", -1}});
    y = graph.call("reshape", {y}, {{"newshape", Ints{1, 16, 4, 16}}});
    heads.push_back(graph.call("transpose", {y}, {{"axes", Ints{0, 2, 1, 3}}}));
  }
  const Expr y = graph.call("nn.attention", heads, {{"scale", 0.25}});
  const std::string projection = "nn.matmul+nn.bias_add";
  EXPECT_THAT(joined(graph.function(y)),
              ElementsAre(projection + "+" + projection + "+" + projection));
}

TEST(AmxSiblings, AreConvolutionsOfOneShapeOfWindow) {
  Graph graph;
  const Expr x = graph.input({1, 64, 16, 16});
  const auto branch = [&](int64_t width, Ints kernel, Ints strides, Ints padding = {}) {
    const Expr y = conv(graph, {{1, 64, 16, 16}, width, kernel, strides, padding}, x);
    return graph.call("nn.relu", {y});
  };
  const Expr pooled = conv(graph, {{1, 64, 16, 16}, 32, {1, 1}}, graph.call("nn.relu", {x}));
  EXPECT_THAT(joined(graph.function(
                  make_tuple({branch(32, {1, 1}, {1, 1}), branch(24, {3, 3}, {1, 1}, {1, 1, 1, 1}),
                              branch(16, {1, 1}, {1, 1}), branch(32, {1, 1}, {2, 2}), pooled}))),
              ElementsAre("nn.conv2d+nn.relu+nn.conv2d+nn.relu"));
  EXPECT_THAT(joined(graph.function(
                  make_tuple({branch(32, {1, 1}, {1, 1}), branch(32, {3, 3}, {1, 1}, {1, 1, 1, 1}),
                              branch(32, {3, 3}, {1, 1}), pooled}))),
              IsEmpty());
}

// The sum of a block's shortcut waits for its other branch, which reads the sibling.
TEST(AmxSiblings, EndBeforeWhatWaitsForOneOfThem) {
  Graph graph;
  const Expr x = graph.input({1, 64, 14, 14});
  Expr y = graph.call("nn.relu", {conv(graph, {{1, 64, 14, 14}, 32, {1, 1}}, x)});
  y = conv(graph, {{1, 32, 14, 14}, 128, {1, 1}}, y);
  const Expr shortcut = graph.call(
      "nn.bias_add", {conv(graph, {{1, 64, 14, 14}, 128, {1, 1}}, x), graph.constant({128})});
  y = graph.call("nn.relu", {graph.call("add", {shortcut, y})});
  EXPECT_THAT(joined(graph.function(y)), ElementsAre("nn.conv2d+nn.bias_add+nn.conv2d+nn.relu"));
}

}  // namespace
}  // namespace collage::testing
