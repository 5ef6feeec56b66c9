// Products of 8-bit integers with what may follow them.
#include "backend/onednn/quantised.h"

#include <gmock/gmock.h>

#include <cmath>

#include "backend/offer.h"
#include "backend/onednn/check.h"
#include "backend/onednn/onednn_backend.h"
#include "ops/quantised.h"
#include "ops/random_inputs.h"
#include "runtime/saved_kernel.h"
#include "runtime/thread_team.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class Quantised : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::has_dot_products())
      GTEST_SKIP() << "oneDNN's products of bytes are exact only with VNNI";
  }
};

Expr number(float value) { return make_constant(Tensor::scalar<float>(value)); }
Expr number(int32_t value) { return make_constant(Tensor::scalar<int32_t>(value)); }
Expr bytes(Shape shape, DType dtype, uint64_t seed = 3) {
  const ValueRange range = dtype == DType::kUInt8 ? ValueRange{0, 255} : ValueRange{-128, 127};
  return make_constant(collage::random_tensor({std::move(shape), dtype}, seed, range));
}
Expr zeros(int64_t count) { return make_constant(Tensor::zeros(DType::kInt32, {count})); }

// How the operands of a product are quantised.
struct Kind {
  DType data = DType::kUInt8;
  int32_t data_zero = 0;
  bool per_channel = true;  // scales of the weights
  int64_t bits = 8;         // of the weights
};
constexpr Kind kKinds[] = {{DType::kUInt8, 0, true},
                           {DType::kUInt8, 117, true},
                           {DType::kInt8, 0, false},
                           {DType::kInt8, -9, true},
                           {DType::kUInt8, 117, true, 7}};

// Those that the processor multiplies exactly.
std::vector<Kind> kinds() {
  std::vector<Kind> found;
  for (const Kind& kind : kKinds)
    if (onednn::has_dot_products() || (kind.bits == 7 && kind.data == DType::kUInt8))
      found.push_back(kind);
  return found;
}

Expr weights_of(Shape shape, const Kind& kind) {
  const auto most = kind.bits == 7 ? double{kLargestOf7Bits} : 128.0;
  return make_constant(
      collage::random_tensor({std::move(shape), DType::kInt8}, 3, {-most, std::min(most, 127.0)}));
}

// Scales of weights such that results are about 1.
Expr weight_scales(int64_t terms, int64_t channels, bool per_channel) {
  const double scale = 1 / (100 * std::sqrt(static_cast<double>(terms)));
  if (!per_channel) return number(static_cast<float>(scale));
  return make_constant(random_tensor({channels}, 11, scale / 2, scale));
}

Expr quantised_conv(Graph& graph, const Conv& c, const Kind& kind) {
  Shape weights = {c.outputs, c.source[1] / c.groups};
  weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
  const int64_t terms = num_elements(weights) / c.outputs;
  const size_t rank = c.kernel.size();
  const auto or_else = [](const Ints& given, Ints otherwise) {
    return given.empty() ? otherwise : given;
  };
  return graph.call("qnn.conv" + std::to_string(rank) + "d",
                    {graph.input(c.source, kind.data), weights_of(weights, kind), number(0.02f),
                     number(kind.data_zero), weight_scales(terms, c.outputs, kind.per_channel),
                     kind.per_channel ? zeros(c.outputs) : number(0)},
                    {{"strides", or_else(c.strides, Ints(rank, 1))},
                     {"padding", or_else(c.padding, Ints(2 * rank, 0))},
                     {"dilation", or_else(c.dilation, Ints(rank, 1))},
                     {"groups", c.groups},
                     {"weight_bits", kind.bits}});
}

Expr quantised_dense(Graph& graph, int64_t rows, int64_t terms, int64_t columns, const Kind& kind) {
  return graph.call(
      "qnn.dense",
      {graph.input({rows, terms}, kind.data), weights_of({columns, terms}, kind), number(0.02f),
       number(kind.data_zero), weight_scales(terms, columns, kind.per_channel),
       kind.per_channel ? zeros(columns) : number(0)},
      {{"weight_bits", kind.bits}});
}

Expr quantize(Graph& graph, const Expr& x, float scale, int32_t zero, const char* dtype) {
  return graph.call("qnn.quantize", {x, number(scale), number(zero)},
                    {{"out_dtype", std::string(dtype)}});
}

class QuantisedConvolutions : public ::testing::TestWithParam<Conv> {};

TEST_P(QuantisedConvolutions, AloneAndWithBiasReluAndRounding) {
  const Conv& c = GetParam();
  if (!onednn::has_dot_products() && !c.strides.empty() && num_elements(c.kernel) == 1) {
    Graph graph;
    EXPECT_THAT(refusal(graph.function(quantised_conv(graph, c, kinds()[0]))),
                HasSubstr("a pointwise convolution of bytes with strides"));
    return;
  }
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(::testing::Message() << dtype_name(kind.data) << " " << kind.data_zero);
    {
      Graph graph;
      check(graph.function(quantised_conv(graph, c, kind)));
    }
    Graph graph;
    Expr y = quantised_conv(graph, c, kind);
    y = graph.call("nn.bias_add", {y, graph.constant({c.outputs})});
    y = graph.call("nn.relu", {y});
    check(graph.function(
        quantize(graph, y, 0.013f, kind.data_zero, kind.data == DType::kUInt8 ? "uint8" : "int8")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, QuantisedConvolutions,
    ::testing::Values(
        Conv{{1, 16, 14, 14}, 16, {3, 3}, {}, {1, 1, 1, 1}},
        Conv{{2, 5, 9, 11}, 7, {3, 3}, {}, {1, 1, 1, 1}},             // odd channels, a batch
        Conv{{1, 3, 33, 31}, 32, {7, 7}, {2, 2}, {3, 3, 3, 3}},       // a stem
        Conv{{1, 1, 12, 12}, 8, {5, 5}, {}, {2, 2, 2, 2}},            // one channel
        Conv{{1, 32, 10, 10}, 1, {1, 1}},                             // one output channel
        Conv{{3, 24, 8, 8}, 48, {1, 1}, {2, 2}},                      // pointwise with strides
        Conv{{1, 64, 1, 1}, 16, {1, 1}},                              // no spatial extent
        Conv{{1, 16, 15, 15}, 32, {3, 3}, {2, 2}, {0, 0, 1, 1}},      // asymmetric padding
        Conv{{1, 32, 16, 16}, 32, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}},  // dilation
        Conv{{1, 128, 8, 8}, 128, {3, 3}, {}, {1, 1, 1, 1}, {}, 32},  // groups of 4
        Conv{{1, 24, 8, 8}, 36, {3, 3}, {}, {1, 1, 1, 1}, {}, 3},     // groups of odd widths
        Conv{{2, 32, 13, 13}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 32},
        Conv{{1, 17, 9, 9}, 17, {5, 5}, {}, {2, 2, 2, 2}, {}, 17},  // depthwise, odd
        Conv{{1, 16, 40}, 24, {3}, {}, {1, 1}},                     // one dimension
        Conv{{1, 16, 3, 14, 14}, 32, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}}));

TEST_F(Quantised, ConvolutionsTakeAndGiveChannelsLast) {
  Graph graph;
  Expr y = quantised_conv(graph, {{1, 64, 14, 14}, 64, {3, 3}, {}, {1, 1, 1, 1}}, {});
  const Checked checked = check(graph.function(quantize(graph, y, 0.02f, 0, "uint8")));
  EXPECT_THAT(checked.names, ::testing::ElementsAre("int8 direct"));
  EXPECT_THAT(checked.variants, Contains("int8 direct(uint8:acdb)->(uint8:acdb)"));
  Graph real;
  const Checked without = check(
      real.function(quantised_conv(real, {{1, 64, 14, 14}, 64, {3, 3}, {}, {1, 1, 1, 1}}, {})));
  EXPECT_THAT(without.variants, Contains("int8 direct(uint8:acdb)->(float32:acdb)"));
}

TEST_F(Quantised, ResidualsAreFloatsOrIntegers) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kInt8})
    for (const bool left : {false, true}) {
      SCOPED_TRACE(dtype_name(dtype));
      Graph graph;
      Expr y = quantised_conv(graph, {{1, 32, 14, 14}, 48, {1, 1}}, kKinds[1]);
      y = graph.call("nn.bias_add", {y, graph.constant({48})});
      Expr other = graph.input({1, 48, 14, 14}, dtype);
      if (dtype != DType::kFloat32)
        other = graph.call("qnn.dequantize", {other, number(0.03f), number(7)});
      y = left ? graph.call("add", {other, y}) : graph.call("add", {y, other});
      y = graph.call("nn.relu", {y});
      check(graph.function(y));
      const Checked rounded = check(graph.function(quantize(graph, y, 0.02f, 0, "uint8")));
      EXPECT_THAT(rounded.layouts, Contains("acdb"));
    }
}

// As tools quantise a residual block: every operator's result by itself. With these scales no
// sum is in the middle of two integers.
TEST_F(Quantised, ResultsMayBeRoundedBeforeTheResidual) {
  for (const char* dtype : {"uint8", "int8"}) {
    Graph graph;
    Expr y = quantised_conv(graph, {{1, 32, 14, 14}, 48, {1, 1}}, kKinds[1]);
    y = graph.call("nn.bias_add", {y, graph.constant({48})});
    y = quantize(graph, y, 0.0113f, 60, dtype);
    y = graph.call("qnn.dequantize", {y, number(0.0113f), number(60)});
    Expr other = graph.call("qnn.dequantize", {graph.input({1, 48, 14, 14}, DType::kUInt8),
                                               number(0.0307f), number(7)});
    y = graph.call("nn.relu", {graph.call("add", {y, other})});
    check(graph.function(quantize(graph, y, 0.0201f, 0, "uint8")));
  }
}

TEST_F(Quantised, OtherStepsBeforeTheRounding) {
  Graph graph;
  Expr y = quantised_conv(graph, {{1, 32, 7, 7}, 32, {3, 3}, {}, {1, 1, 1, 1}}, kKinds[0]);
  y = graph.call("nn.hard_swish", {y});
  y = graph.call("multiply", {y, graph.constant({1, 32, 1, 1}, 0.5, 1)});
  check(graph.function(quantize(graph, y, 0.02f, 16, "uint8")), 1e-4);
}

TEST(QuantisedDense, WithBiasActivationAndRounding) {
  for (const Kind& kind : kinds())
    for (const int64_t rows : {1, 7, 128}) {
      SCOPED_TRACE(::testing::Message()
                   << dtype_name(kind.data) << " " << kind.data_zero << ", " << rows << " rows");
      Graph graph;
      Expr y = quantised_dense(graph, rows, 96, 64, kind);
      const Checked alone = check(graph.function(y));
      EXPECT_THAT(alone.names, Contains("int8 packed"));
      y = graph.call("add", {y, graph.constant({64})});
      y = graph.call("nn.relu", {y});
      check(graph.function(quantize(graph, y, 0.02f, 3, "int8")));
    }
}

TEST_F(Quantised, ProductsOfEveryForm) {
  for (const bool constant : {false, true})
    for (const bool transposed : {false, true})
      for (const int64_t batch : {1, 3}) {
        SCOPED_TRACE(::testing::Message() << constant << transposed << batch);
        Shape right = transposed ? Shape{batch, 24, 64} : Shape{batch, 64, 24};
        Shape left = {batch, 48, 64};
        if (batch == 1) left.erase(left.begin()), right.erase(right.begin());
        Graph graph;
        Expr a = graph.input(left, DType::kUInt8);
        Expr b = constant ? bytes(right, DType::kInt8) : graph.input(right, DType::kInt8);
        check(graph.function(
            graph.call("qnn.matmul",
                       {a, b, number(0.02f), number(120), weight_scales(64, 24, true), zeros(24)},
                       {{"transpose_a", false}, {"transpose_b", transposed}})));
      }
}

TEST_F(Quantised, RightOperandsHaveASignOrNotAndAZeroPoint) {
  for (const bool constant : {false, true})
    for (const DType left : {DType::kUInt8, DType::kInt8})
      for (const DType right : {DType::kUInt8, DType::kInt8})
        for (const int32_t zero : {0, 11, 128}) {
          SCOPED_TRACE(::testing::Message() << constant << " " << dtype_name(left) << " "
                                            << dtype_name(right) << " " << zero);
          Graph graph;
          const Shape shape = {2, 40, 33};
          Expr a = graph.input({2, 35, 40}, left);
          Expr b = constant ? bytes(shape, right) : graph.input(shape, right);
          Expr y = graph.call("qnn.matmul",
                              {a, b, number(0.02f), number(5), number(0.001f), number(zero)});
          check(graph.function(y));
          check(graph.function(quantize(graph, y, 0.02f, 100, "uint8")));
        }
}

TEST_F(Quantised, ZeroPointsOfDataMayBeComputed) {
  for (const bool constant : {false, true})
    for (const DType left : {DType::kUInt8, DType::kInt8})
      for (const int64_t rows : {1, 35}) {
        SCOPED_TRACE(::testing::Message() << constant << " " << dtype_name(left) << " " << rows);
        Graph graph;
        Expr a = graph.input({rows, 40}, left), zero = graph.input({}, DType::kInt32);
        Expr b = constant ? bytes({40, 33}, DType::kInt8) : graph.input({40, 33}, DType::kInt8);
        Expr y = graph.call("qnn.matmul", {a, b, number(0.02f), zero, number(0.001f), number(3)});
        check(graph.function(graph.call("add", {y, graph.input({33})})));
      }
  Graph graph;
  Expr x = graph.input({1, 8, 4, 4}, DType::kUInt8), zero = graph.input({}, DType::kInt32);
  EXPECT_THAT(refusal(graph.function(
                  graph.call("qnn.conv2d", {x, bytes({8, 8, 1, 1}, DType::kInt8), number(0.02f),
                                            zero, number(0.001f), number(0)}))),
              HasSubstr("no constant number"));
  EXPECT_THAT(refusal(graph.function(graph.call(
                  "qnn.matmul", {graph.input({4, 8}, DType::kUInt8), bytes({8, 8}, DType::kInt8),
                                 number(0.02f), number(0), number(0.001f), zero}))),
              HasSubstr("no zero point of data"));
}

TEST_F(Quantised, UnsignedWeightsAroundTheMiddleAreSignedOnes) {
  const auto convolution = [](DType dtype, const Expr& scale, const Expr& zero) {
    Graph graph;
    return graph.function(graph.call(
        "qnn.conv2d", {graph.input({1, 16, 6, 6}, DType::kUInt8), bytes({24, 16, 3, 3}, dtype),
                       number(0.02f), number(3), scale, zero}));
  };
  const Expr one = number(0.001f);
  check(convolution(DType::kUInt8, one, number(128)));
  for (const auto& [dtype, zero] : {std::pair{DType::kUInt8, 120}, {DType::kInt8, 1}})
    EXPECT_THAT(refusal(convolution(dtype, one, number(zero))),
                HasSubstr("weights with a zero point"));
  Tensor two = Tensor::zeros(DType::kInt32, {24});
  two.data<int32_t>()[20] = 1;
  EXPECT_THAT(refusal(convolution(DType::kInt8, weight_scales(144, 24, true), make_constant(two))),
              HasSubstr("weights with different zero points"));
}

// check() compares what is loaded, where anything is saved at all.
TEST_F(Quantised, KernelsAreSavedWithTheirScales) {
  Graph graph;
  const Expr y = quantised_conv(graph, {{1, 32, 8, 8}, 48, {3, 3}, {}, {1, 1, 1, 1}}, kKinds[1]);
  const Function function = graph.function(quantize(graph, y, 0.02f, 9, "uint8"));
  const auto backend = make_onednn_backend();
  const Target target{"onednn", {}, {}};
  const TeamScope team(1);
  const auto variants = backend->variants(function, target, {});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  const auto kernel = backend->compile(function, variants->front(), target, {});
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  Result<SavedKernel> saved = (*kernel)->save();
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  saved->buffers = buffers_of(function, variants->front());
  const KernelLoader* loader = find_kernel_loader(saved->loader);
  ASSERT_NE(loader, nullptr);
  EXPECT_TRUE(loader->load(*saved, 1).ok());
  const std::string masks = "\"masks\":[";
  const size_t at = saved->description.find(masks);
  ASSERT_NE(at, std::string::npos) << saved->description;
  SavedKernel broken = *saved;  // as if the source had a scale for each channel
  const size_t mask = broken.description.find(',', at) + 1;
  ASSERT_EQ(broken.description[mask], '0');
  broken.description[mask] = '2';
  EXPECT_FALSE(loader->load(broken, 1).ok());
  broken.description.replace(at + masks.size(), 1, "99");
  EXPECT_FALSE(loader->load(broken, 1).ok());
}

TEST_F(Quantised, SumsThatCouldLeave32BitsAreRefused) {
  Graph graph;
  EXPECT_THAT(refusal(graph.function(quantised_dense(graph, 1, 70000, 2, {}))),
              HasSubstr("sums of 70000 products"));
}

TEST_F(Quantised, IntegersAreNotLowered) {
  Graph graph;
  const auto backend = make_onednn_backend();
  const auto variants =
      variants_to_cost(*backend, graph.function(quantised_dense(graph, 4, 32, 8, {})),
                       {"onednn", {}, {}}, {1, "", RoundingLimit::kAny});
  EXPECT_TRUE(variants.ok() && variants->empty());
}

// The whole of what is moved or selected is there, bit for bit.
TEST(Bytes, ArePooledJoinedAndMoved) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    SCOPED_TRACE(dtype_name(dtype));
    Graph pool;
    const Checked pooled = check(pool.function(pool.call(
        "nn.max_pool2d", {pool.input({1, 32, 13, 13}, dtype)},
        {{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}})));
    EXPECT_THAT(pooled.layouts, Contains("acdb"));
    Graph join;
    const Expr parts =
        make_tuple({join.input({1, 16, 5, 5}, dtype), join.input({1, 7, 5, 5}, dtype)});
    const Checked joined =
        check(join.function(join.call("concatenate", {parts}, {{"axis", int64_t{1}}})));
    EXPECT_THAT(joined.layouts, IsSupersetOf({"plain", "acdb"}));
    Graph turn;
    check(turn.function(
        turn.call("transpose", {turn.input({3, 20, 17}, dtype)}, {{"axes", Ints{0, 2, 1}}})));
    Graph slice;
    check(slice.function(slice.call("strided_slice", {slice.input({1, 32, 9, 9}, dtype)},
                                    {{"begin", Ints{8}}, {"end", Ints{24}}, {"axes", Ints{1}}})));
  }
}

TEST(Bytes, AreNotComputedWith) {
  Graph graph;
  Expr x = graph.input({1, 16, 8, 8}, DType::kInt8);
  EXPECT_FALSE(refusal(graph.function(graph.call("nn.relu", {x}))).empty());
  EXPECT_FALSE(refusal(graph.function(graph.call("add", {x, x}))).empty());
  EXPECT_FALSE(refusal(graph.function(graph.call("sum", {x}))).empty());
}

TEST(Quantisation, ChangesTheLayoutToo) {
  for (const char* dtype : {"uint8", "int8"})
    for (const int32_t zero : {0, 4}) {
      // Its reorder gives other neighbours of a middle.
      Graph graph;
      EXPECT_FALSE(
          refusal(graph.function(quantize(graph, graph.input({1, 3, 16, 20}), 0.5f, zero, dtype)))
              .empty());
      Graph back;
      const DType type = std::string_view(dtype) == "int8" ? DType::kInt8 : DType::kUInt8;
      const Checked real = check(back.function(back.call(
          "qnn.dequantize", {back.input({1, 20, 7, 7}, type), number(0.011f), number(zero)})));
      EXPECT_THAT(real.variants, Contains(::testing::StartsWith(std::string("reorder(") + dtype +
                                                                ":acdb)->(float32")));
    }
}

}  // namespace
}  // namespace collage::testing
