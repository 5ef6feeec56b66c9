// Products by constant matrices on the matrix unit.
#include <gmock/gmock.h>

#include <random>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(Contractions, DenseOfAnyRows) {
  for (int64_t rows : {8, 15, 16, 17, 31, 32, 33, 64, 130}) {
    SCOPED_TRACE(rows);
    Graph graph;
    check_amx(graph.function(
        graph.call("nn.dense", {graph.input({rows, 48}), graph.constant({40, 48}, 0.2)})));
  }
}

struct Product {
  const char* op;
  Shape left, right;
  bool transposed;
};
using Products = ContractionsWith<Product>;

TEST_P(Products, MatchTheReference) {
  const auto& [op, left, right, transposed] = GetParam();
  Graph graph;
  Attrs attrs;
  if (std::string_view(op) != "nn.dense") attrs.set("transpose_b", transposed);
  Expr y = graph.call(op, {graph.input(left), graph.constant(right, 0.2)}, attrs);
  check_amx(graph.function(y));
  y = graph.call("add", {y, graph.constant({y->tensor_type().shape.back()})});
  y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
  check_amx(graph.function(graph.call("nn.relu", {y})));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Products,
    ::testing::Values(Product{"nn.dense", {9, 16}, {1, 16}, true},
                      Product{"nn.dense", {33, 47}, {17, 47}, true},
                      Product{"nn.dense", {2, 7, 40}, {24, 40}, true},
                      Product{"nn.dense", {2, 3, 5, 33}, {33, 33}, true},
                      Product{"nn.dense", {24, 768}, {1536, 768}, true},
                      Product{"nn.matmul", {17, 33}, {33, 47}, false},
                      Product{"nn.matmul", {17, 33}, {47, 33}, true},
                      Product{"nn.matmul", {3, 11, 40}, {40, 24}, false},
                      Product{"nn.matmul", {3, 11, 40}, {24, 40}, true},
                      Product{"nn.matmul", {11, 40}, {1, 40, 24}, false},
                      Product{"nn.matmul", {2, 3, 9, 64}, {1, 1, 64, 96}, false},
                      Product{"nn.matmul", {20, 600}, {600, 1100}, false},
                      Product{"nn.batch_matmul", {1, 19, 32}, {1, 35, 32}, true},
                      Product{"nn.batch_matmul", {1, 19, 32}, {1, 32, 35}, false}));

TEST_F(Contractions, ProductsOfRandomShapes) {
  std::mt19937 random(21);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < trials(40); ++trial) {
    const int64_t rows = pick(8, 150), depth = pick(16, 200), columns = pick(1, 150);
    const bool transposed = pick(0, 1) == 1;
    SCOPED_TRACE(::testing::Message()
                 << rows << "x" << depth << "x" << columns << " " << transposed);
    Graph graph(static_cast<uint64_t>(trial));
    const Shape right = transposed ? Shape{columns, depth} : Shape{depth, columns};
    check_amx(graph.function(graph.call("nn.matmul",
                                        {graph.input({rows, depth}), graph.constant(right, 0.1)},
                                        {{"transpose_b", transposed}})));
    if (HasFailure()) return;
  }
}

TEST(AmxProduct, RefusesWhatItCannotOrWhatDoesNotPay) {
  const auto reason = [](const char* op, Shape left, Shape right, bool constant, Attrs attrs = {}) {
    Graph graph;
    const Expr a = graph.input(std::move(left));
    const Expr b = constant ? graph.constant(right) : graph.input(right);
    return refusal(graph.function(graph.call(op, {a, b}, std::move(attrs))));
  };
  EXPECT_THAT(reason("nn.dense", {7, 64}, {32, 64}, true), HasSubstr("7 rows"));
  EXPECT_THAT(reason("nn.dense", {32, 15}, {32, 15}, true), HasSubstr("15 channels"));
  EXPECT_THAT(reason("nn.dense", {32, 64}, {32, 64}, false), HasSubstr("computed"));
  EXPECT_THAT(reason("nn.dense", {64}, {32, 64}, true), HasSubstr("vector"));
  EXPECT_THAT(reason("nn.dense", {0, 64}, {32, 64}, true), HasSubstr("empty"));
  EXPECT_THAT(reason("nn.dense", {16, 0}, {32, 0}, true), HasSubstr("empty"));
  EXPECT_THAT(reason("nn.matmul", {2, 16, 32}, {2, 32, 16}, true), HasSubstr("batch of right"));
  EXPECT_THAT(reason("nn.matmul", {32, 16}, {32, 24}, true, {{"transpose_a", true}}),
              HasSubstr("transposed left"));
}

}  // namespace
}  // namespace collage::testing
