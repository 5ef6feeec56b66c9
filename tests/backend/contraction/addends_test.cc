// Sums of two 1x1 convolutions as one product over the channels of both images.
#include <gmock/gmock.h>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Expr biased(Graph& graph, const Expr& y) {
  return graph.call("nn.bias_add", {y, graph.constant({y->tensor_type().shape[1]})},
                    {{"axis", int64_t{1}}});
}

struct Addends {
  Conv first, second;
};
void PrintTo(const Addends& addends, std::ostream* os) {
  PrintTo(addends.first, os);
  *os << " and ";
  PrintTo(addends.second, os);
}
using Sums = ContractionsWith<Addends>;

// `biases` of the two; what follows the sum is a tensor and an activation.
Function sum_of(const Addends& addends, int biases, bool followed) {
  Graph graph;
  Expr a = conv(graph, addends.first, graph.input(addends.first.source)),
       b = conv(graph, addends.second, graph.input(addends.second.source));
  if (biases > 0) a = biased(graph, a);
  if (biases > 1) b = biased(graph, b);
  Expr sum = graph.call("add", {a, b});
  if (followed)
    sum = graph.call("nn.relu", {graph.call("add", {sum, graph.input(sum->tensor_type().shape)})});
  return graph.function(sum);
}

TEST_P(Sums, MatchTheReference) {
  for (int biases : {0, 1, 2}) check_amx(sum_of(GetParam(), biases, biases == 1));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Sums,
    ::testing::Values(
        Addends{{{1, 64, 14, 14}, 96, {1, 1}}, {{1, 32, 14, 14}, 96, {1, 1}}},
        Addends{{{1, 64, 7, 9}, 48, {1, 1}}, {{1, 96, 13, 18}, 48, {1, 1}, {2, 2}}},  // a stride
        Addends{{{3, 32, 9, 9}, 33, {1, 1}, {2, 3}}, {{3, 64, 5, 3}, 33, {1, 1}}},    // a batch
        Addends{{{1, 256, 5, 5}, 512, {1, 1}}, {{1, 128, 5, 5}, 512, {1, 1}}},  // shared by columns
        Addends{{{1, 160, 5, 5}, 512, {1, 1}},
                {{1, 256, 5, 5}, 512, {1, 1}}},                               // copied across both
        Addends{{{1, 64, 5, 5}, 256, {1, 1}}, {{1, 32, 5, 5}, 256, {1, 1}}},  // copied by pixels
        Addends{{{1, 32, 40, 40}, 256, {1, 1}}, {{1, 32, 40, 40}, 256, {1, 1}}},
        Addends{{{1, 32, 6, 6}, 40, {1, 1}, {}, {1, 1, 1, 1}}, {{1, 32, 8, 8}, 40, {1, 1}}},
        Addends{{{1, 32, 50}, 64, {1}}, {{1, 64, 99}, 64, {1}, {2}}}));

TEST(Addends, AreOfferedWithBiasesAndWhatFollows) {
  const Function function =
      sum_of({{{1, 64, 8, 8}, 96, {1, 1}}, {{1, 32, 8, 8}, 96, {1, 1}}}, 2, true);
  EXPECT_THAT(candidate_labels(function),
              Contains("nn.conv2d+nn.bias_add+nn.conv2d+nn.bias_add+add+add+nn.relu"));
}

void expect_refused(const Function& function, const char* reason = "a sum of two contractions") {
  EXPECT_THAT(candidate_labels(function), Not(Contains(ContainsRegex("nn.conv.*nn.conv"))));
  EXPECT_THAT(refusal(function), HasSubstr(reason));
}

TEST(Addends, AreNotWhatIsNoProductOfTheSameMatrix) {
  // blocks of channels that are not whole, other taps
  expect_refused(sum_of({{{1, 48, 8, 8}, 32, {1, 1}}, {{1, 32, 8, 8}, 32, {1, 1}}}, 0, false));
  expect_refused(sum_of(
      {{{1, 32, 8, 8}, 32, {3, 3}, {}, {1, 1, 1, 1}}, {{1, 32, 8, 8}, 32, {1, 1}}}, 0, false));
  expect_refused(
      sum_of({{{1, 64, 8, 8}, 32, {1, 1}, {}, {}, {}, 2}, {{1, 32, 8, 8}, 32, {1, 1}}}, 0, false));
}

TEST(Addends, AreNotSummedAfterAnActivation) {
  Graph graph;
  const Conv one{{1, 32, 8, 8}, 32, {1, 1}};
  const Expr a = conv(graph, one, graph.input(one.source)),
             b = conv(graph, one, graph.input(one.source));
  expect_refused(graph.function(graph.call("add", {graph.call("nn.relu", {a}), b})));
  expect_refused(graph.function(graph.call("add", {a, graph.call("nn.relu", {b})})));
}

TEST(Addends, AreNotSummedAfterAResidual) {
  Graph graph;
  const Conv one{{1, 32, 8, 8}, 32, {1, 1}};
  const Expr a = conv(graph, one, graph.input(one.source)),
             b = conv(graph, one, graph.input(one.source)),
             residual = graph.call("add", {a, graph.input({1, 32, 8, 8})});
  expect_refused(graph.function(graph.call("add", {residual, b})));
  expect_refused(graph.function(graph.call("add", {b, residual})));
}

// Equal extents, but the sum broadcasts.
TEST(Addends, AreOfOneType) {
  Graph graph;
  const Conv line{{1, 32, 32}, 32, {1}}, image{{1, 32, 1, 32}, 32, {1, 1}};
  const Expr a = conv(graph, line, graph.input(line.source)),
             b = conv(graph, image, graph.input(image.source));
  expect_refused(graph.function(graph.call("add", {a, b})), "add after nn.conv1d");
}

TEST_F(Contractions, OfOneImageMayBeSummed) {
  Graph graph;
  const Conv one{{1, 32, 8, 8}, 48, {1, 1}};
  const Expr image = graph.input(one.source);
  check_amx(graph.function(graph.call("add", {conv(graph, one, image), conv(graph, one, image)})));
  const Expr y = conv(graph, one, image);
  check_amx(graph.function(graph.call("add", {y, y})));
}

}  // namespace
}  // namespace collage::testing
