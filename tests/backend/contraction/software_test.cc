// The software model of the instructions: what it must share with the processor beside the results
// that the other tests hold it to, and, where the processor has the instructions, every bit.
#include "backend/contraction/check.h"
#include "backend/contraction/kernels/processor.h"
#include "backend/contraction/software/tile_model.h"
#include "backend/contraction/software/vector_model.h"

namespace collage::testing {
namespace {

/// Full tiles while it lives.
class Tiles {
 public:
  Tiles() {
    alignas(64) uint8_t shapes[64] = {1};
    for (int t = 0; t < 8; ++t) {
      shapes[16 + 2 * t] = 64;
      shapes[48 + t] = 16;
    }
    software::load_tile_shapes(shapes);
  }
  ~Tiles() {
    const uint8_t none[64] = {};
    software::load_tile_shapes(none);
  }
};

/// The first element of c + A B, where row 0 of A and column 0 of B are given pair by pair (32
/// numbers at most); all others are zero.
float product(float c, const std::vector<float>& a, const std::vector<float>& b) {
  const Tiles tiles;
  alignas(64) uint16_t left[16][32] = {}, right[16][32] = {};
  alignas(64) float sums[16][16] = {};
  for (size_t i = 0; i < a.size(); ++i) {
    left[0][i] = software::to_bfloat16(a[i]);
    right[i / 2][i % 2] = software::to_bfloat16(b[i]);
  }
  sums[0][0] = c;
  _tile_loadd(0, sums, 64);
  _tile_loadd(1, left, 64);
  _tile_loadd(2, right, 64);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, sums, 64);
  return sums[0][0];
}

TEST(SoftwareTiles, SumsOfEvenAndOddColumnsAreRoundedApart) {
  // 2^24 + 1 + 1: one after the other both ones are lost.
  EXPECT_EQ(product(0, {4096, 0, 1, 0, 1, 0}, {4096, 0, 1, 0, 1, 0}), 0x1p24f);
  EXPECT_EQ(product(0, {4096, 1, 0, 1, 0, 0}, {4096, 1, 0, 1, 0, 0}), 0x1p24f + 2);
  // The destination is added last.
  EXPECT_EQ(product(0x1p24f, {1, 1, 0, 0}, {1, 1, 0, 0}), 0x1p24f + 2);
  EXPECT_EQ(product(0x1p24f, {1, 0, 1, 0}, {1, 0, 1, 0}), 0x1p24f + 2);
  EXPECT_EQ(product(0x1p24f, {1}, {1}), 0x1p24f);
}

TEST(SoftwareTiles, ProductsAreNotRoundedBeforeTheyAreAdded) {
  // 2^127 * 2 is infinite alone.
  EXPECT_EQ(product(0, {-0x1p127f, 0, 0x1p127f, 0}, {1, 0, 2, 0}), 0x1p127f);
  EXPECT_EQ(product(0, {0x1p127f}, {2}), INFINITY);
  // 2^-126 + (1 + 2^-7) 2^-149 / 2, whose second term alone is half a unit and would be lost.
  EXPECT_EQ(product(0, {0x1p-63f, 0, 0x1.02p-75f, 0}, {0x1p-63f, 0, 0x1p-75f, 0}),
            0x1p-126f + 0x1p-149f);
}

TEST(SoftwareTiles, DenormalNumbersAreZeros) {
  EXPECT_EQ(product(0x1p-127f, {0}, {0}), 0);                // in the destination
  EXPECT_EQ(product(0, {0x1p-127f}, {0x1p127f}), 0);         // in an operand
  EXPECT_EQ(product(0, {0x1p-64f}, {0x1p-63f}), 0);          // as a result
  EXPECT_EQ(product(0, {0x1p-63f}, {0x1p-63f}), 0x1p-126f);  // the least that is none
}

TEST(SoftwareTiles, InfinitiesAndNaN) {
  EXPECT_EQ(product(1, {INFINITY}, {2}), INFINITY);
  EXPECT_TRUE(std::isnan(product(0, {INFINITY}, {0})));
  EXPECT_TRUE(std::isnan(product(0, {INFINITY, INFINITY}, {1, -1})));
  EXPECT_TRUE(std::isnan(product(0, {NAN}, {1})));
}

TEST(SoftwareTilesDeathTest, MisuseIsAFault) {
  EXPECT_DEATH(_tile_zero(0), "no shapes");
  EXPECT_DEATH(
      {
        const Tiles tiles;
        _tile_zero(8);
      },
      "tiles 0 to 7");
  EXPECT_DEATH(
      {
        const Tiles tiles;
        _tile_dpbf16ps(0, 1, 1);
      },
      "used twice");
  alignas(64) const float numbers[32] = {};
  EXPECT_DEATH(_mm512_load_ps(numbers + 1), "not aligned");
}

TEST(SoftwareVectors, RoundingToBfloat16) {
  EXPECT_EQ(software::to_bfloat16(1 + 0x1p-8f), 0x3f80);  // half-way: to even
  EXPECT_EQ(software::to_bfloat16(1 + 0x3p-8f), 0x3f82);
  EXPECT_EQ(software::to_bfloat16(3.4e38f), 0x7f80);
  EXPECT_EQ(software::to_bfloat16(-0x1p-127f), 0x8000);
  uint32_t quiet = 0x7f800001;  // a NaN whose upper half is infinity's
  float nan;
  std::memcpy(&nan, &quiet, sizeof nan);
  EXPECT_EQ(software::to_bfloat16(nan), 0x7fc0);
}

TEST(SoftwareVectors, PowersOfTwo) {
  EXPECT_EQ(software::scaled(3, 2.9f), 12);
  EXPECT_EQ(software::scaled(3, -0.1f), 1.5f);
  EXPECT_EQ(software::scaled(1, -INFINITY), 0);
  EXPECT_EQ(software::scaled(1, 1000), INFINITY);
  EXPECT_EQ(software::scaled(1, -149), 0x1p-149f);
  EXPECT_TRUE(std::isnan(software::scaled(INFINITY, -INFINITY)));
  EXPECT_EQ(software::above_floor(2.75f), 0.75f);
  EXPECT_EQ(software::above_floor(-0.25f), 0.75f);
  EXPECT_EQ(software::above_floor(-1e-30f), 1 - 0x1p-24f);  // less than 1
  EXPECT_EQ(software::above_floor(-INFINITY), 0);
}

TEST(SoftwareVectors, ExtremesOfWhatIsNoNumberAreTheSecondOperands) {
  const __m512 nan = _mm512_set1_ps(NAN), one = _mm512_set1_ps(1);
  EXPECT_EQ(_mm512_max_ps(nan, one)[0], 1);
  EXPECT_TRUE(std::isnan(_mm512_max_ps(one, nan)[0]));
  EXPECT_TRUE(std::isnan(_mm512_min_ps(one, nan)[0]));
  EXPECT_TRUE(std::signbit(_mm512_max_ps(_mm512_set1_ps(0.0f), _mm512_set1_ps(-0.0f))[0]));
}

// The functions that each kernel of the folder computes: products, convolutions tap by tap and by
// Winograd's algorithm, every activation, residuals, attention with a mask.
std::vector<Function> every_kernel() {
  std::vector<Function> functions;
  const auto add = [&](const auto& build) {
    Graph graph;
    const Expr result = build(graph);
    functions.push_back(graph.function(result));
  };
  add([](Graph& g) {
    return g.call("nn.dense", {g.input({37, 100}), g.constant({50, 100}, 0.1)});
  });
  add([](Graph& g) { return conv(g, {{1, 40, 9, 10}, 48, {3, 3}, {1, 1}, {1, 1, 1, 1}}); });
  add([](Graph& g) { return conv(g, {{2, 16, 11, 9}, 32, {5, 3}, {2, 1}, {2, 2, 1, 1}}); });
  for (const char* op : {"nn.relu", "nn.leaky_relu", "sigmoid", "nn.silu", "tanh"})
    add([&](Graph& g) {
      const Expr y = conv(g, {{1, 32, 6, 6}, 32, {1, 1}});
      return g.call("add", {g.call(op, {y}), g.input({1, 32, 6, 6})});
    });
  for (const char* approximate : {"none", "tanh"})
    add([&](Graph& g) {
      const Expr y = g.call("nn.dense", {g.input({20, 64}), g.constant({32, 64}, 0.1)});
      return g.call("nn.gelu", {g.call("add", {y, g.constant({32})})},
                    {{"approximate", std::string(approximate)}});
    });
  for (const bool causal : {false, true})
    add([&](Graph& g) {
      return g.call("nn.attention",
                    {g.input({2, 3, 70, 40}), g.input({2, 3, 70, 40}), g.input({2, 3, 70, 24})},
                    {{"scale", 0.2}, {"causal", causal}});
    });
  return functions;
}

struct Pair {
  const Backend &real, &model;
  Target target;
  bool lowered;
};

void expect_equal_bits(const Pair& pair, const Function& function, const Variant& variant) {
  SCOPED_TRACE(pair.target.to_string() + " " + variant.to_string());
  const std::vector<Tensor> inputs = random_inputs(function);
  auto real = pair.real.compile(function, variant, pair.target, {2, ""}),
       model = pair.model.compile(function, variant, pair.target, {2, ""});
  ASSERT_TRUE(real.ok() && model.ok());
  const auto got = run_guarded(**real, function, variant, inputs),
             modelled = run_guarded(**model, function, variant, inputs);
  ASSERT_EQ(got.size(), modelled.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::memcmp(got[i].raw(), modelled[i].raw(), got[i].bytes()), 0) << "result " << i;
}

void compare_with_the_processor(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    size_t compared = 0;
    for (const Function& function : every_kernel()) {
      auto variants = variants_of(pair.real, function, pair.target, {2, ""}, pair.lowered);
      if (!variants.ok()) continue;  // of some numbers of parts
      for (const Variant& variant : *variants) {
        expect_equal_bits(pair, function, variant);
        ++compared;
      }
    }
    EXPECT_GE(compared, 10u);
  }
}

TEST(SoftwareModel, GivesWhatTheMatrixUnitGives) {
  if (const Status status = contraction::matrix_unit(); !status.ok())
    GTEST_SKIP() << "nothing to compare the software model with: " << status.message();
  compare_with_the_processor(
      {{amx_backend(), amx_in_software(), {"amx", {}, {}}, false},
       {amx_backend(), amx_in_software(), {"amx", {{"parts", "3"}}, {}}, false},
       {amx_backend(), amx_in_software(), {"amx", {}, {}}, true}});
}

}  // namespace
}  // namespace collage::testing
