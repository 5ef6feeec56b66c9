// Variants in bfloat16; processors without it have none.
#include <gmock/gmock.h>

#include "backend/onednn/check.h"
#include "backend/onednn/layouts.h"
#include "backend/onednn/onednn_backend.h"
#include "ops/half.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

class Lowered : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!make_onednn_backend()->traits().lowers)
      GTEST_SKIP() << "oneDNN does not compute in bfloat16 on this processor";
  }
};

float widened(uint16_t bits) { return half_to_float(bits, DType::kBFloat16); }

TEST_F(Lowered, ConvolutionWithBiasResidualAndActivation) {
  Graph graph;
  Expr x = graph.input({1, 32, 14, 14});
  Expr y = graph.call("nn.conv2d", {x, graph.constant({48, 32, 3, 3}, 0.1)},
                      {{"padding", Ints{1, 1, 1, 1}}});
  y = graph.call("nn.bias_add", {y, graph.constant({48})});
  y = graph.call("add", {y, graph.input({1, 48, 14, 14})});
  y = graph.call("nn.relu", {y});
  const Checked checked = check_lowered(graph.function(y));
  EXPECT_THAT(checked.names, Contains("bf16 direct"));
  EXPECT_THAT(checked.layouts, IsSupersetOf({"bfloat16:acdb", "float32:acdb"}));
}

TEST_F(Lowered, StridedConvolutionsOfOddSizes) {
  for (int64_t channels : {16, 35}) {
    Graph graph;
    Expr y =
        graph.call("nn.conv2d",
                   {graph.input({1, channels, 15, 13}), graph.constant({24, channels, 3, 3}, 0.1)},
                   {{"padding", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
    check_lowered(graph.function(y));
  }
}

TEST_F(Lowered, DenseWithBiasActivationAndResidual) {
  for (int64_t rows : {1, 7, 128}) {
    Graph graph;
    Expr y = graph.call("nn.dense", {graph.input({rows, 96}), graph.constant({64, 96}, 0.1)});
    y = graph.call("add", {y, graph.constant({64})});
    y = graph.call("nn.gelu", {y}, {{"approximate", std::string("tanh")}});
    y = graph.call("add", {y, graph.input({rows, 64})});
    const Checked checked = check_lowered(graph.function(y));
    EXPECT_THAT(checked.names, Contains("bf16 packed"));
    EXPECT_THAT(checked.layouts, IsSupersetOf({"bfloat16", "float32"}));
  }
}

TEST_F(Lowered, ProductsOfEveryForm) {
  for (bool constant : {false, true})
    for (bool transposed : {false, true}) {
      Graph graph;
      Shape right = transposed ? Shape{24, 64} : Shape{64, 24};
      Expr y =
          graph.call("nn.matmul",
                     {graph.input({48, 64}), constant ? graph.constant(right) : graph.input(right)},
                     {{"transpose_a", false}, {"transpose_b", transposed}});
      check_lowered(graph.function(y));
    }
  Graph graph;
  check_lowered(
      graph.function(graph.call("nn.matmul", {graph.input({3, 16, 32}), graph.input({3, 32, 8})})));
}

TEST_F(Lowered, WhatStandsBetweenProducts) {
  for (const char* op : {"nn.relu", "nn.max_pool2d", "nn.global_avg_pool2d", "nn.softmax"}) {
    SCOPED_TRACE(op);
    Graph graph;
    Attrs attrs;
    if (std::string_view(op) == "nn.max_pool2d")
      attrs = {{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}};
    const Checked checked =
        check_lowered(graph.function(graph.call(op, {graph.input({1, 32, 9, 9})}, attrs)));
    EXPECT_FALSE(checked.names.empty());
  }
  Graph graph;
  Expr norm = graph.call(
      "nn.layer_norm", {graph.input({6, 64}), graph.constant({64}, 0.5, 1), graph.constant({64})});
  check_lowered(graph.function(norm));
}

TEST(Conversion, ToBfloat16RoundsToNearest) {
  auto backend = make_onednn_backend();
  TensorType type{{1, 20, 5, 5}, DType::kFloat32};
  Tensor source = random_tensor(type.shape, 3);
  Encoding plain = onednn::encoding_of({}, onednn::kFloat);
  Encoding lowered = onednn::encoding_of(Layout::channels_last(4), onednn::kBrainFloat);
  auto down = backend->compile_conversion(type, plain, lowered, {});
  auto up = backend->compile_conversion(type, lowered, plain, {});
  ASSERT_TRUE(down.ok() && up.ok());
  std::vector<uint16_t> between(500);
  Tensor result = Tensor::empty(DType::kFloat32, type.shape);
  void *in = source.raw(), *middle = between.data(), *out = result.raw();
  ASSERT_TRUE((*down)->run({&in, &middle, nullptr}).ok());
  ASSERT_TRUE((*up)->run({&middle, &out, nullptr}).ok());
  for (int64_t i = 0; i < source.size(); ++i)
    EXPECT_EQ(result.data<float>()[i],
              widened(float_to_half(source.data<float>()[i], DType::kBFloat16)));
}

}  // namespace
}  // namespace collage::testing
