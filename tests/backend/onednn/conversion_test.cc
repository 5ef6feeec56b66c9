// Conversions between layouts, and what the pattern table finds.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "backend/onednn/check.h"
#include "backend/onednn/layouts.h"
#include "backend/onednn/onednn_backend.h"
#include "backend/onednn/quantised.h"
#include "base/check.h"
#include "ops/random_inputs.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

Encoding encoding(std::string_view tag) {
  return onednn::encoding_of(Layout::parse(tag).value(), onednn::kFloat);
}

TEST(Conversion, MovesEveryElementBetweenAllLayouts) {
  auto backend = make_onednn_backend();
  for (const Shape& shape : {Shape{2, 19, 5, 7}, Shape{1, 32, 1, 1}, Shape{3, 16, 4, 4}})
    for (const char* from : {"plain", "acdb", "aBcd16b", "aBcd8b", "aBcd4b", "cdab"})
      for (const char* to : {"plain", "acdb", "aBcd16b", "aBcd8b", "aBcd4b", "cdab"}) {
        SCOPED_TRACE(shape_to_string(shape) + " " + from + " to " + to);
        TensorType type{shape, DType::kFloat32};
        auto kernel = backend->compile_conversion(type, encoding(from), encoding(to), {});
        ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
        Layout a = encoding(from).layout, b = encoding(to).layout;
        Tensor tensor = random_tensor(shape, 7);
        Tensor source = Tensor::zeros(DType::kFloat32, a.physical_shape(shape));
        Tensor result = Tensor::empty(DType::kFloat32, b.physical_shape(shape));
        for (float& v : std::span(result.data<float>(), static_cast<size_t>(result.size())))
          v = NAN;
        std::vector<Shape> indices;
        for (int64_t i = 0; i < tensor.size(); ++i) {
          Shape index(shape.size());
          int64_t rest = i;
          for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
          source.data<float>()[a.offset(shape, index)] = tensor.data<float>()[i];
          indices.push_back(index);
        }
        Tensor workspace =
            Tensor::empty(DType::kInt8, {static_cast<int64_t>((*kernel)->workspace_bytes())});
        void *in = source.raw(), *out = result.raw();
        ASSERT_TRUE((*kernel)->run({&in, &out, workspace.raw()}).ok());
        double sum = 0, expected = 0;
        for (int64_t i = 0; i < tensor.size(); ++i) {
          float value = tensor.data<float>()[i];
          ASSERT_EQ(result.data<float>()[b.offset(shape, indices[static_cast<size_t>(i)])], value);
          expected += std::abs(value);
        }
        for (float v : result.values<float>()) sum += std::abs(v);
        EXPECT_NEAR(sum, expected, 1e-9 * expected) << "the padding is not zero";
      }
}

TEST(Conversion, MovesBytes) {
  auto backend = make_onednn_backend();
  const Shape shape = {2, 19, 5, 7};
  for (const DType dtype : {DType::kInt8, DType::kUInt8})
    for (const char* tag : {"acdb", "aBcd16b"}) {
      SCOPED_TRACE(tag);
      const TensorType type{shape, dtype};
      const Layout layout = Layout::parse(tag).value();
      const Encoding plain = plain_encoding(type), other{dtype, layout, VirtualDevice{}};
      auto there = backend->compile_conversion(type, plain, other, {});
      auto back = backend->compile_conversion(type, other, plain, {});
      ASSERT_TRUE(there.ok() && back.ok());
      const Tensor source = collage::random_tensor(type, 5, {0, 127});
      Tensor between = Tensor::empty(dtype, layout.physical_shape(shape)),
             result = Tensor::empty(dtype, shape);
      void *in = const_cast<void*>(source.raw()), *middle = between.raw(), *out = result.raw();
      ASSERT_TRUE((*there)->run({&in, &middle, nullptr}).ok());
      ASSERT_TRUE((*back)->run({&middle, &out, nullptr}).ok());
      EXPECT_EQ(between.data<int8_t>()[layout.offset(shape, {1, 3, 2, 4})],
                source.data<int8_t>()[((19 + 3) * 5 + 2) * 7 + 4]);
      EXPECT_EQ(std::memcmp(result.raw(), source.raw(), source.bytes()), 0);
      EXPECT_FALSE(
          backend->compile_conversion(type, plain, onednn::encoding_of({}, onednn::kFloat), {})
              .ok());
    }
}

TEST(Conversion, RefusesOtherTypes) {
  auto backend = make_onednn_backend();
  Encoding integers{DType::kInt32, Layout(), VirtualDevice{}};
  EXPECT_FALSE(backend->compile_conversion({{4}, DType::kInt32}, integers, integers, {}).ok());
}

TEST(Layouts, AreEqualWhereMemoryIs) {
  auto canonical = [](const char* tag, const Shape& shape) {
    return onednn::canonical(Layout::parse(tag).value(), shape).to_string();
  };
  EXPECT_EQ(canonical("aBcd16b", {1, 32, 1, 1}), "plain");
  EXPECT_EQ(canonical("acdb", {4, 32, 1, 1}), "plain");
  EXPECT_EQ(canonical("acdb", {1, 1, 5, 5}), "plain");
  EXPECT_EQ(canonical("aBcd16b", {1, 19, 1, 1}), "aBcd16b");  // padded
  EXPECT_EQ(canonical("acdb", {1, 32, 1, 2}), "acdb");
  EXPECT_EQ(canonical("aBcd16b", {2, 16, 3, 1}), "aBcd16b");
}

// The operator lists of the candidates that the pattern table finds.
std::vector<std::string> candidates(const Function& function) {
  auto backend = make_onednn_backend();
  Target target;
  target.kind = "onednn";
  auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"onednn", backend->partition_rule(target), target});
  DataflowGraph graph(function);
  std::vector<std::string> found;
  for (const CandidatePartition& candidate : all_candidates(graph, spec)) {
    found.push_back(candidate.sub_graph.ops_label(graph));
    // Whatever the table finds here can be planned.
    EXPECT_TRUE(backend->variants(candidate.function(graph), target, {}).ok()) << found.back();
  }
  return found;
}

TEST(PatternTable, FindsChainsAfterAnchorsAndElementwiseChains) {
  Graph graph;
  Expr x = graph.input({1, 8, 6, 6});
  Expr y = graph.call("nn.conv2d", {x, graph.constant({16, 8, 1, 1})});
  y = graph.call("nn.bias_add", {y, graph.constant({16})});
  y = graph.call("nn.relu", {y});
  y = graph.call("add", {y, graph.input({1, 16, 6, 6})});
  y = graph.call("sin", {y});
  auto found = candidates(graph.function(y));
  EXPECT_THAT(found, Contains("nn.conv2d+nn.bias_add"));
  EXPECT_THAT(found, Contains("nn.conv2d+nn.bias_add+nn.relu+add"));
  EXPECT_THAT(found, Contains("nn.relu+add"));
  EXPECT_THAT(found, Not(Contains(::testing::HasSubstr("sin"))));
}

TEST(PatternTable, KeepsAConvolutionAndItsBiasTogether) {
  Graph graph;
  Expr y = graph.call("nn.conv2d", {graph.input({1, 8, 6, 6}), graph.constant({16, 8, 1, 1})});
  Expr biased = graph.call("nn.bias_add", {y, graph.constant({16})});
  EXPECT_THAT(candidates(graph.function(graph.call("nn.relu", {biased}))),
              ::testing::UnorderedElementsAre("nn.conv2d+nn.bias_add",
                                              "nn.conv2d+nn.bias_add+nn.relu", "nn.relu"));
  // Not where the value before the bias has another user.
  EXPECT_THAT(candidates(graph.function(graph.call("add", {biased, y}))), Contains("nn.conv2d"));
}

TEST(PatternTable, StopsAtBroadcastsOfTheRunningValue) {
  Graph graph;
  Expr y = graph.call("nn.global_avg_pool2d", {graph.input({1, 8, 6, 6})});
  y = graph.call("add", {y, graph.input({1, 8, 6, 6})});
  auto found = candidates(graph.function(y));
  EXPECT_THAT(found, Contains("nn.global_avg_pool2d"));
  EXPECT_THAT(found, Not(Contains("nn.global_avg_pool2d+add")));
}

TEST(PatternTable, LeavesIntegersAlone) {
  Graph graph;
  Expr x = make_var("x", TensorType{{4}, DType::kInt64});
  EXPECT_THAT(candidates(make_function({x}, graph.call("add", {x, x}))), ::testing::IsEmpty());
}

TEST(PatternTable, FindsProductsOfIntegersWithWhatIsAddedToThem) {
  if (!onednn::has_dot_products()) GTEST_SKIP() << "exact only with VNNI";
  const auto number = [](auto value) {
    return make_constant(Tensor::scalar<decltype(value)>(value));
  };
  const auto quantised = [&](Shape shape) {
    return make_constant(collage::random_tensor({std::move(shape), DType::kInt8}, 3, {-128, 127}));
  };
  Graph graph;
  Expr y = graph.call("qnn.conv2d",
                      {graph.input({1, 8, 6, 6}, DType::kUInt8), quantised({16, 8, 1, 1}),
                       number(0.1F), number(int32_t{3}), number(0.01F), number(int32_t{0})});
  y = graph.call("nn.bias_add", {y, graph.constant({16})});
  Expr other = graph.call("qnn.dequantize", {graph.input({1, 16, 6, 6}, DType::kUInt8),
                                             number(0.2F), number(int32_t{128})});
  y = graph.call("add", {y, other});
  y = graph.call("qnn.quantize", {y, number(0.2F), number(int32_t{128})},
                 {{"out_dtype", std::string("uint8")}});
  EXPECT_THAT(
      candidates(graph.function(y)),
      ::testing::UnorderedElementsAre(
          "qnn.conv2d+nn.bias_add", "qnn.conv2d+nn.bias_add+add",
          "qnn.conv2d+nn.bias_add+qnn.dequantize+add", "qnn.conv2d+nn.bias_add+add+qnn.quantize",
          "qnn.conv2d+nn.bias_add+qnn.dequantize+add+qnn.quantize", "add", "qnn.dequantize"));
}

}  // namespace
}  // namespace collage::testing
