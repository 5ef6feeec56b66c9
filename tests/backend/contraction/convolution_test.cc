// Convolutions on the matrix unit, over the shapes that its geometry tells apart.
#include <gmock/gmock.h>

#include <random>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::HasSubstr;

using Convolutions = ContractionsWith<Conv>;

TEST_P(Convolutions, MatchTheReference) {
  Graph graph;
  check_amx(graph.function(conv(graph, GetParam())));
}

TEST_P(Convolutions, WithBiasResidualAndRelu) {
  Graph graph;
  Expr y = conv(graph, GetParam());
  y = graph.call("nn.bias_add", {y, graph.constant({GetParam().outputs})});
  y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
  check_amx(graph.function(graph.call("nn.relu", {y})));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolutions,
    ::testing::Values(
        Conv{{1, 16, 14, 14}, 16, {3, 3}, {}, {1, 1, 1, 1}},
        Conv{{1, 17, 9, 11}, 33, {3, 3}, {}, {1, 1, 1, 1}},  // neither tiles nor blocks are whole
        Conv{{1, 47, 13, 7}, 17, {3, 3}, {}, {1, 1, 1, 1}}, Conv{{1, 33, 8, 8}, 47, {3, 3}},
        Conv{{3, 32, 7, 9}, 48, {3, 3}, {}, {1, 1, 1, 1}},  // a batch
        Conv{{3, 17, 5, 5}, 5, {3, 3}, {2, 2}, {1, 1, 1, 1}},
        Conv{{1, 64, 1, 130}, 64, {1, 1}},  // pointwise
        Conv{{3, 40, 6, 5}, 70, {1, 1}}, Conv{{1, 48, 15, 15}, 33, {1, 1}, {2, 2}},
        Conv{{1, 16, 9, 9}, 16, {1, 1}, {3, 3}, {1, 2, 0, 1}},
        Conv{{1, 16, 15, 15}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}},  // strides
        Conv{{1, 16, 17, 17}, 32, {3, 3}, {3, 3}, {1, 1, 1, 1}},
        Conv{{2, 16, 14, 15}, 32, {5, 4}, {1, 3}, {2, 1, 2, 2}},
        Conv{{1, 20, 15, 14}, 24, {3, 2}, {2, 1}, {1, 0, 0, 1}},
        Conv{{1, 16, 11, 11}, 16, {2, 2}, {3, 3}},                // strides beyond the kernel
        Conv{{1, 16, 15, 15}, 32, {3, 3}, {2, 2}, {0, 0, 1, 1}},  // asymmetric padding
        Conv{{1, 16, 6, 6}, 32, {3, 3}, {}, {2, 0, 0, 3}},
        Conv{{1, 32, 16, 16}, 32, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}},  // dilation
        Conv{{1, 18, 7, 8}, 20, {3, 3}, {}, {4, 3, 4, 3}, {4, 3}},
        Conv{{1, 16, 13, 13}, 20, {3, 3}, {2, 2}, {2, 2, 2, 2}, {2, 2}},
        Conv{{1, 16, 13, 13}, 20, {3, 3}, {2, 3}, {3, 3, 3, 3}, {3, 2}},
        Conv{{1, 16, 2, 3}, 16, {5, 5}, {}, {3, 3, 3, 3}},  // kernels beyond the image
        Conv{{1, 16, 1, 1}, 32, {7, 7}, {}, {4, 4, 4, 4}},
        Conv{{3, 16, 2, 2}, 16, {3, 3}, {2, 2}, {4, 4, 4, 4}, {3, 3}},
        Conv{{1, 256, 5, 5}, 512, {3, 3}, {}, {1, 1, 1, 1}},  // weights beyond a core's cache
        Conv{{1, 128, 9, 9}, 128, {3, 3}, {}, {1, 1, 1, 1}, {}, 32},  // groups
        Conv{{2, 64, 7, 8}, 96, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 2},
        Conv{{1, 60, 6, 6}, 90, {3, 3}, {}, {1, 1, 1, 1}, {}, 5},
        Conv{{1, 80, 5, 5}, 16, {1, 1}, {}, {}, {}, 2},
        Conv{{1, 256, 7, 7}, 512, {3, 3}, {}, {1, 1, 1, 1}, {}, 4},
        Conv{{1, 32, 60, 60}, 64, {3, 3}, {2, 2}, {1, 1, 1, 1}},  // copies of some rows at a time
        Conv{{3, 64, 40, 41}, 32, {3, 3}, {}, {1, 1, 1, 1}}, Conv{{1, 96, 70, 33}, 64, {1, 1}},
        Conv{{1, 64, 33, 65}, 96, {1, 1}, {2, 2}},
        Conv{{1, 32, 66, 65}, 80, {1, 1}},       // a result beyond a core's cache
        Conv{{1, 16, 40}, 24, {3}, {}, {1, 1}},  // one dimension
        Conv{{3, 33, 21}, 17, {5}, {2}, {2, 1}}, Conv{{1, 16, 40}, 16, {3}, {}, {2, 2}, {2}},
        Conv{{1, 16, 3, 6, 7}, 32, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}},  // three dimensions
        Conv{{2, 17, 4, 5, 6}, 33, {2, 3, 3}, {2, 1, 2}, {0, 1, 1, 1, 0, 1}},
        Conv{{1, 16, 5, 5, 5}, 16, {3, 1, 3}, {1, 2, 1}, {2, 0, 2, 2, 0, 2}, {2, 1, 2}}));

TEST_F(Contractions, ConvolutionsOfRandomShapes) {
  std::mt19937 random(20);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < trials(60); ++trial) {
    const size_t rank = static_cast<size_t>(pick(1, 3));
    Conv c{{pick(1, 3), pick(16, 70)}, pick(1, 70), {}};
    c.padding.resize(2 * rank);
    int64_t rows = c.source[0];
    for (size_t d = 0; d < rank; ++d) {
      c.kernel.push_back(pick(1, 4));
      c.strides.push_back(pick(1, 3));
      c.dilation.push_back(pick(1, 3));
      c.padding[d] = pick(0, 3);
      c.padding[rank + d] = pick(0, 3);
      const int64_t reach = (c.kernel[d] - 1) * c.dilation[d] + 1,
                    pads = c.padding[d] + c.padding[rank + d],
                    size = std::max(reach - pads, pick(1, rank == 3 ? 7 : 14));
      c.source.push_back(size);
      rows *= (size + pads - reach) / c.strides[d] + 1;
    }
    if (rows < 8) continue;
    SCOPED_TRACE(::testing::PrintToString(c));
    Graph graph(static_cast<uint64_t>(trial));
    Expr y = conv(graph, c);
    if (trial % 2 == 0) y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
    check_amx(graph.function(y));
    if (HasFailure()) return;
  }
}

TEST(AmxConvolution, RefusesWhatDoesNotPay) {
  Graph groups, computed, narrow, rows, large;
  EXPECT_THAT(refusal(large.function(conv(large, {{1, 16, 12000, 12000}, 17, {1, 1}}))),
              HasSubstr("4608000000 elements"));
  EXPECT_THAT(
      refusal(groups.function(conv(groups, {{1, 32, 8, 8}, 32, {3, 3}, {}, {1, 1, 1, 1}, {}, 16}))),
      HasSubstr("groups"));
  EXPECT_THAT(refusal(computed.function(computed.call(
                  "nn.conv2d", {computed.input({1, 16, 8, 8}), computed.input({16, 16, 3, 3})}))),
              HasSubstr("computed"));
  EXPECT_THAT(refusal(narrow.function(conv(narrow, {{1, 15, 8, 8}, 32, {3, 3}}))),
              HasSubstr("15 channels"));
  EXPECT_THAT(refusal(rows.function(conv(rows, {{1, 16, 1, 7}, 32, {1, 1}}))), HasSubstr("7 rows"));
}

}  // namespace
}  // namespace collage::testing
