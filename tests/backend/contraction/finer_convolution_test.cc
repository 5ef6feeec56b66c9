// Convolutions whose result is finer than the image they read: transposed ones, and those of an
// image enlarged by repeating its pixels.
#include <gmock/gmock.h>

#include <random>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::HasSubstr;

/// Each pixel repeated so many times along each dimension.
Expr enlarged(Graph& graph, const Expr& image, const Ints& factors,
              const std::string& method = "nearest_neighbor") {
  const Shape& shape = image->tensor_type().shape;
  Ints size;
  for (size_t d = 0; d < factors.size(); ++d) size.push_back(shape[d + 2] * factors[d]);
  return graph.call("image.resize" + std::to_string(factors.size()) + "d", {image},
                    {{"size", size},
                     {"method", method},
                     {"coordinate_transformation_mode", std::string("asymmetric")},
                     {"rounding_method", std::string("floor")}});
}

struct Enlarged {
  Conv conv;  // `source` is the small image
  Ints factors;
};
void PrintTo(const Enlarged& e, std::ostream* os) {
  PrintTo(e.conv, os);
  *os << ", each pixel " << shape_to_string(e.factors) << " times";
}
Expr enlarged_conv(Graph& graph, const Enlarged& e) {
  return conv(graph, e.conv, enlarged(graph, graph.input(e.conv.source), e.factors));
}

/// As it is, and with what may follow.
template <typename Case>
void check_both(const Case& given, Expr (*make)(Graph&, const Case&)) {
  Graph plain, followed;
  check_amx(plain.function(make(plain, given)));
  Expr y = make(followed, given);
  y = followed.call("nn.bias_add", {y, followed.constant({given.conv.outputs})});
  y = followed.call("add", {y, followed.input(y->tensor_type().shape)});
  check_amx(followed.function(followed.call("tanh", {y})));
}

using TransposedConvolutions = ContractionsWith<TransposedConv>;
TEST_P(TransposedConvolutions, MatchTheReference) { check_both(GetParam(), transposed_conv); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposedConvolutions,
    ::testing::Values(
        TransposedConv{{{1, 32, 8, 8}, 32, {4, 4}, {2, 2}, {1, 1, 1, 1}}},
        TransposedConv{{{3, 17, 7, 5}, 33, {4, 4}, {2, 2}, {1, 1, 1, 1}}},  // odd, a batch
        TransposedConv{{{1, 16, 7, 9}, 20, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {1, 1}},
        TransposedConv{{{1, 16, 7, 9}, 20, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {0, 1}},
        TransposedConv{{{1, 20, 9, 8}, 18, {3, 5}, {}, {0, 1, 2, 1}}},  // a stride of 1
        TransposedConv{{{1, 16, 9, 8}, 16, {1, 1}, {2, 2}}},            // passes without taps
        TransposedConv{{{2, 16, 6, 7}, 16, {2, 1}, {3, 3}}, {2, 1}},
        TransposedConv{{{1, 16, 6, 7}, 16, {5, 4}, {3, 2}, {2, 0, 0, 3}}, {1, 1}},
        TransposedConv{{{1, 16, 8, 8}, 16, {3, 3}, {2, 2}, {4, 3, 3, 4}}},  // cropped
        TransposedConv{{{9, 16, 2, 1}, 16, {1, 1}, {2, 2}, {1, 0, 1, 0}}},  // no taps at all
        TransposedConv{{{1, 16, 8, 9}, 24, {3, 3}, {2, 2}, {1, 1, 1, 1}, {2, 2}}},
        TransposedConv{{{1, 16, 8, 9}, 24, {3, 2}, {2, 1}, {1, 0, 1, 1}, {3, 2}}, {2, 1}},
        TransposedConv{{{1, 64, 9, 9}, 48, {4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 4}},  // groups
        TransposedConv{{{2, 60, 5, 6}, 90, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 5}},
        TransposedConv{{{1, 256, 5, 5}, 320, {4, 4}, {2, 2}, {1, 1, 1, 1}}},  // large weights
        TransposedConv{{{1, 64, 40, 41}, 40, {4, 4}, {2, 2}, {1, 1, 1, 1}}},  // some rows at a time
        TransposedConv{{{1, 20, 19}, 17, {4}, {2}, {1, 1}}},
        TransposedConv{{{1, 16, 3, 4, 5}, 20, {2, 3, 4}, {2, 1, 2}, {0, 1, 1, 0, 1, 1}}},
        TransposedConv{{{1, 16, 3, 4, 5}, 20, {3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}},
                       {1, 0, 1}}));

using EnlargedConvolutions = ContractionsWith<Enlarged>;
TEST_P(EnlargedConvolutions, MatchTheReference) { check_both(GetParam(), enlarged_conv); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, EnlargedConvolutions,
    ::testing::Values(
        Enlarged{{{1, 32, 8, 8}, 32, {3, 3}, {}, {1, 1, 1, 1}}, {2, 2}},
        Enlarged{{{3, 17, 5, 7}, 33, {3, 3}, {}, {1, 1, 1, 1}}, {2, 2}},
        Enlarged{{{1, 16, 6, 7}, 20, {3, 3}, {}, {0, 2, 1, 0}}, {2, 2}},  // asymmetric padding
        Enlarged{{{1, 16, 6, 7}, 20, {5, 4}, {}, {2, 2, 2, 1}}, {2, 3}},
        Enlarged{{{1, 16, 6, 7}, 20, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}}, {2, 2}},  // dilation
        Enlarged{{{1, 16, 9, 8}, 16, {1, 1}}, {2, 2}},
        Enlarged{{{1, 16, 9, 8}, 16, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {2, 2}},  // strides
        Enlarged{{{1, 16, 9, 8}, 16, {3, 3}, {3, 2}, {1, 1, 1, 1}}, {2, 3}},
        Enlarged{{{1, 16, 9, 8}, 16, {3, 3}, {4, 2}, {1, 0, 1, 1}}, {2, 4}},
        Enlarged{{{1, 64, 6, 6}, 32, {3, 3}, {}, {1, 1, 1, 1}, {}, 4}, {2, 2}},  // groups
        Enlarged{{{1, 128, 10, 11}, 320, {3, 3}, {}, {1, 1, 1, 1}}, {2, 2}},     // large weights
        Enlarged{{{1, 20, 19}, 17, {3}, {}, {1, 1}}, {2}},
        Enlarged{{{1, 16, 3, 4, 5}, 20, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}}, {2, 1, 2}}));

/// Kernels, strides, padding and dilation at random.
struct RandomConv {
  std::mt19937 random;
  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }
  Conv operator()(size_t rank) {
    Conv c{{pick(1, 3), pick(16, 40)}, pick(1, 40), {}};
    if (pick(1, 4) == 1) {
      c.groups = 2;
      c.source[1] = 2 * pick(8, 20);
      c.outputs = 2 * pick(1, 20);
    }
    c.padding.resize(2 * rank);
    for (size_t d = 0; d < rank; ++d) {
      c.source.push_back(pick(1, rank == 3 ? 4 : 9));
      c.kernel.push_back(pick(1, 5));
      c.strides.push_back(pick(1, 3));
      c.dilation.push_back(pick(1, 4) == 1 ? 2 : 1);
      c.padding[d] = pick(0, 3);
      c.padding[rank + d] = pick(0, 3);
    }
    return c;
  }
};

TEST_F(Contractions, TransposedConvolutionsOfRandomShapes) {
  RandomConv random{std::mt19937(3)};
  int checked = 0;
  for (int trial = 0; trial < trials(80); ++trial) {
    const size_t rank = static_cast<size_t>(random.pick(1, 3));
    TransposedConv t{random(rank), {}};
    int64_t rows = t.conv.source[0];
    for (size_t d = 0; d < rank; ++d) {
      const int64_t stride = t.conv.strides[d], dilation = t.conv.dilation[d];
      t.output_padding.push_back(random.pick(0, std::max(stride, dilation) - 1));
      const int64_t extent = (t.conv.source[d + 2] - 1) * stride +
                             (t.conv.kernel[d] - 1) * dilation + 1 + t.output_padding[d] -
                             t.conv.padding[d] - t.conv.padding[rank + d];
      rows *= std::max<int64_t>(0, (extent + stride - 1) / stride);
    }
    if (rows < 8) continue;
    SCOPED_TRACE(::testing::PrintToString(t));
    Graph graph(static_cast<uint64_t>(trial));
    Expr y = transposed_conv(graph, t);
    if (trial % 2 == 0) y = graph.call("nn.bias_add", {y, graph.constant({t.conv.outputs})});
    check_amx(graph.function(y));
    if (HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, trials(80) / 2);
}

TEST_F(Contractions, EnlargedConvolutionsOfRandomShapes) {
  RandomConv random{std::mt19937(4)};
  int checked = 0;
  for (int trial = 0; trial < trials(80); ++trial) {
    const size_t rank = static_cast<size_t>(random.pick(1, 3));
    Enlarged e{random(rank), {}};
    int64_t rows = e.conv.source[0];
    for (size_t d = 0; d < rank; ++d) {
      e.factors.push_back(random.pick(1, 3));
      const int64_t stride = e.conv.strides[d],
                    room = e.conv.source[d + 2] * e.factors[d] + e.conv.padding[d] +
                           e.conv.padding[rank + d] - (e.conv.kernel[d] - 1) * e.conv.dilation[d],
                    extent = room < 1 ? 0 : (room - 1) / stride + 1,
                    up = e.factors[d] / std::gcd(e.factors[d], stride);
      rows *= (extent + up - 1) / up;
    }
    if (rows < 8) continue;
    SCOPED_TRACE(::testing::PrintToString(e));
    Graph graph(static_cast<uint64_t>(trial));
    Expr y = enlarged_conv(graph, e);
    if (trial % 2 == 0) y = graph.call("nn.bias_add", {y, graph.constant({e.conv.outputs})});
    check_amx(graph.function(y));
    if (HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, trials(80) / 2);
}

TEST(AmxFinerConvolution, RefusesWhatDoesNotPay) {
  Graph rows, groups, computed, linear;
  EXPECT_THAT(refusal(rows.function(transposed_conv(rows, {{{1, 16, 1, 7}, 16, {2, 2}, {2, 2}}}))),
              HasSubstr("7 rows"));
  EXPECT_THAT(refusal(groups.function(transposed_conv(
                  groups, {{{1, 32, 8, 8}, 64, {4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 16}}))),
              HasSubstr("groups of 2 channels"));
  EXPECT_THAT(
      refusal(computed.function(computed.call(
          "nn.conv2d_transpose", {computed.input({1, 16, 8, 8}), computed.input({16, 16, 3, 3})}))),
      HasSubstr("computed"));
  EXPECT_THAT(refusal(linear.function(
                  conv(linear, {{1, 16, 8, 8}, 16, {3, 3}},
                       enlarged(linear, linear.input({1, 16, 8, 8}), {2, 2}, "linear")))),
              HasSubstr("operand that is computed"));
}

TEST(AmxFinerConvolution, CandidatesHoldTheEnlargementOrNot) {
  const auto labels = [](const std::string& method, bool used_elsewhere) {
    Graph graph;
    const Expr large = enlarged(graph, graph.input({1, 16, 8, 8}), {2, 2}, method);
    Expr y = conv(graph, {{1, 16, 8, 8}, 16, {3, 3}, {}, {1, 1, 1, 1}}, large);
    y = graph.call("nn.relu", {y});
    if (used_elsewhere) y = graph.call("maximum", {y, large});
    return candidate_labels(graph.function(y));
  };
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(labels("nearest_neighbor", false),
              UnorderedElementsAre("nn.conv2d", "nn.conv2d+nn.relu", "image.resize2d+nn.conv2d",
                                   "image.resize2d+nn.conv2d+nn.relu"));
  EXPECT_THAT(labels("linear", false), UnorderedElementsAre("nn.conv2d", "nn.conv2d+nn.relu"));
  EXPECT_THAT(labels("nearest_neighbor", true),
              UnorderedElementsAre("nn.conv2d", "nn.conv2d+nn.relu"));
}

TEST(AmxFinerConvolution, CandidatesOfTransposedOnesTakeWhatFollows) {
  Graph graph;
  Expr y = transposed_conv(graph, {{{1, 16, 8, 8}, 16, {4, 4}, {2, 2}, {1, 1, 1, 1}}});
  y = graph.call("nn.bias_add", {y, graph.constant({16})});
  EXPECT_THAT(
      candidate_labels(graph.function(graph.call("tanh", {y}))),
      ::testing::UnorderedElementsAre("nn.conv2d_transpose", "nn.conv2d_transpose+nn.bias_add",
                                      "nn.conv2d_transpose+nn.bias_add+tanh"));
}

}  // namespace
}  // namespace collage::testing
