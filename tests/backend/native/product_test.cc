// Matrix products: constant and variable right operands, batches, transposes, prologues and
// epilogues.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backend/check.h"
#include "backend/native/native_backend.h"
#include "backend/offer.h"
#include "check.h"

namespace collage::native {
namespace {

TEST(Product, Dense) {
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1000, 128}, {33, 47, 21}, {128, 96, 64}, {16, 64, 50}, {1, 1, 100}, {3, 256, 3}}) {
    const Expr x = var("x", {m, k});
    check_function(function({x}, call("nn.dense", {x, weights({n, k}, true)})),
                   {.integers = true, .every_width = true});
    const Expr y = call("nn.bias_add", {call("nn.dense", {x, weights({n, k})}), weights({n})},
                        {{"axis", int64_t{-1}}});
    // One result may be a small difference of large terms: of the sum, or of gelu.
    const bool one = m * n == 1;
    check_function(function({x}, call(one ? "tanh" : "nn.gelu", {y})),
                   {.tolerance = one ? 2e-4 : 2e-5, .every_width = true});
  }
}

TEST(Product, HeavyWeights) {
  for (int64_t rows : {10, 29}) {  // one pass in two streams, several that read ahead
    const Expr x = var("x", {rows, 512});
    check_function(function({x}, call("nn.dense", {x, weights({545, 512}, true)})),
                   {.least_variants = 2, .integers = true});
    check_function(function({x}, call("nn.relu", {call("nn.matmul", {x, weights({512, 576})})})),
                   {.least_variants = 2});
  }
}

TEST(Product, HeavyWeightsAndMoreRowsThanFitACache) {
  const Expr x = var("x", {653, 520});
  check_function(function({x}, call("nn.matmul", {x, weights({520, 528}, true)})),
                 {.least_variants = 2, .integers = true});
}

/// But for products of integers, which processors with instructions for them have besides.
size_t lowered_variants(const Function& f) {
  const auto backend = make_native_backend();
  const auto variants =
      variants_to_cost(*backend, f, Target{"native", {}, {}}, {2, "", RoundingLimit::kAny});
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return 0;
  return static_cast<size_t>(std::count_if(
      variants->begin(), variants->end(),
      [](const Variant& variant) { return variant.name.find("integers") == std::string::npos; }));
}

// Small integers lose nothing in bfloat16; other weights round to 8 bits, and the errors average
// out.
TEST(Product, FewRowsWithWeightsInBfloat16) {
  for (int64_t rows : {1, 3}) {
    const Expr x = var("x", {rows, 512});
    for (int64_t columns : {1024, 545})
      check_function(function({x}, call("nn.dense", {x, weights({columns, 512}, true)})),
                     {.integers = true, .lowered = true});
    const Expr y = call("nn.matmul", {x, weights({512, 1030})});
    check_function(function({x}, call("nn.relu", {y})), {.tolerance = 2e-3, .lowered = true});
  }
  // Many rows, or weights that stay in the caches, gain nothing.
  const Expr many = var("x", {64, 512}), small = var("x", {1, 64});
  EXPECT_EQ(lowered_variants(function({many}, call("nn.dense", {many, weights({1024, 512})}))), 0u);
  EXPECT_EQ(lowered_variants(function({small}, call("nn.dense", {small, weights({64, 64})}))), 0u);
}

TEST(Product, DenseWithLeadingDimensionsAndResidual) {
  const Expr x = var("x", {2, 9, 48}), r = var("r", {2, 9, 32});
  const Expr y = call("nn.bias_add", {call("nn.dense", {x, weights({32, 48})}), weights({32})},
                      {{"axis", int64_t{-1}}});
  check_function(function({x, r}, call("add", {y, r})));
}

TEST(Product, MatmulWithConstant) {
  const Expr x = var("x", {1, 20, 40});
  check_function(function({x}, call("nn.matmul", {x, weights({40, 64})})), {.every_width = true});
  check_function(function({x}, call("nn.matmul", {x, weights({1, 40, 30})})),
                 {.every_width = true});
  const Expr t = var("t", {40, 20});
  check_function(function({t}, call("nn.matmul", {t, weights({64, 40})},
                                    {{"transpose_a", true}, {"transpose_b", true}})),
                 {.every_width = true});
}

TEST(Product, MatmulOfTwoVariables) {
  for (bool transpose_a : {false, true}) {
    for (bool transpose_b : {false, true}) {
      const Expr a = var("a", transpose_a ? Shape{3, 24, 17} : Shape{3, 17, 24});
      const Expr b = var("b", transpose_b ? Shape{3, 35, 24} : Shape{3, 24, 35});
      check_function(
          function({a, b}, call("nn.matmul", {a, b},
                                {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}})),
          {.every_width = true});
    }
  }
  const Expr a = var("a", {2, 1, 17, 24}), b = var("b", {3, 24, 32});
  check_function(function({a, b}, call("nn.matmul", {a, b})), {.every_width = true});
}

TEST(Product, AttentionScoresWithTheirTransposes) {
  // (tokens, heads * width) viewed and transposed to heads, as exporters write it.
  const Expr q = var("q", {24, 64}), k = var("k", {24, 64});
  auto heads = [](const Expr& x) {
    return call("transpose", {call("reshape", {x}, {{"newshape", Ints{24, 4, 16}}})},
                {{"axes", Ints{1, 0, 2}}});
  };
  const Expr scores = call("nn.matmul", {heads(q), heads(k)}, {{"transpose_b", true}});
  check_function(function({q, k}, call("multiply", {scores, make_scalar(0.25f)})));
}

TEST(Product, LayerNormInFront) {
  const Expr x = var("x", {12, 48});
  const Expr y = call("nn.layer_norm", {x, weights({48}), weights({48})});
  check_function(function({x}, call("nn.dense", {y, weights({64, 48})})));
}

TEST(Attention, Shapes) {
  struct Case {
    Shape q, k;
    int64_t value_width;
  };
  for (const Case& c :
       {Case{{2, 64, 32}, {2, 64, 32}, 32}, Case{{1, 3, 33, 16}, {1, 3, 50, 16}, 48},
        Case{{2, 1, 64}, {2, 20, 64}, 64}, Case{{2, 17, 8}, {2, 5, 8}, 20},
        Case{{1, 96, 16}, {1, 50, 16}, 32}, Case{{2, 64, 16}, {2, 150, 16}, 16},
        Case{{3, 160, 8}, {3, 160, 8}, 24}, Case{{1, 48, 16}, {1, 48, 16}, 16}}) {
    for (bool causal : {false, true}) {
      SCOPED_TRACE(
          fmt::format("{} keys {} causal {}", shape_to_string(c.q), shape_to_string(c.k), causal));
      const Expr q = var("q", c.q), k = var("k", c.k);
      Shape values = c.k;
      values.back() = c.value_width;
      const Expr v = var("v", values);
      check_function(function({q, k, v}, call("nn.attention", {q, k, v},
                                              {{"scale", 0.3}, {"causal", causal}})),
                     {.every_width = true});
    }
  }
}

TEST(Attention, Masks) {
  const Expr q = var("q", {2, 4, 32, 16}), k = var("k", {2, 4, 24, 16}),
             v = var("v", {2, 4, 24, 16});
  for (const Shape& shape : {Shape{2, 1, 1, 24}, Shape{32, 24}}) {
    const Expr mask = var("mask", shape);
    check_function(
        function({q, k, v, mask}, call("nn.attention", {q, k, v, mask}, {{"scale", 0.25}})),
        {.every_width = true});
  }
}

// Rows that a mask hides whole, by float32's lowest number or, where the reference gives NaN, by
// infinity; and rows of which it hides what a causal product shows.
TEST(Attention, HiddenRows) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {48, 64}) {
    const Expr q = var("q", {2, n, 16}), k = var("k", {2, n, 16}), v = var("v", {2, n, 32});
    const Expr mask = var("mask", {n, n});
    std::vector<Tensor> inputs;
    for (const Shape& shape : {Shape{2, n, 16}, Shape{2, n, 16}, Shape{2, n, 32}})
      inputs.push_back(collage::testing::random_tensor(shape, inputs.size()));
    Tensor& hidden = inputs.emplace_back(Tensor::empty(DType::kFloat32, {n, n}));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float& at = hidden.data<float>()[i * n + j];
        at = 0;
        if (i % 4 == 0) at = kLowest;
        if (i % 4 == 1 && j <= i) at = kLowest;
        if (i % 4 == 2 && j % 2 == 0) at = -kInfinity;
        if (i == 11) at = -kInfinity;
      }
    }
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(fmt::format("{} keys causal {}", n, causal));
      check_with_inputs(function({q, k, v, mask}, call("nn.attention", {q, k, v, mask},
                                                       {{"scale", 0.25}, {"causal", causal}})),
                        inputs, {.every_width = true});
    }
  }
}

TEST(Attention, HeadsTakenFromAndPutBackIntoRows) {
  const Expr q = var("q", {40, 64}), k = var("k", {40, 64}), v = var("v", {40, 64});
  auto heads = [](const Expr& x) {
    return call("transpose", {call("reshape", {x}, {{"newshape", Ints{40, 4, 16}}})},
                {{"axes", Ints{1, 0, 2}}});
  };
  const Expr y =
      call("nn.attention", {heads(q), heads(k), heads(v)}, {{"scale", 0.25}, {"causal", true}});
  const Expr rows = call("transpose", {y}, {{"axes", Ints{1, 0, 2}}});
  check_function(function({q, k, v}, rows));
  check_function(function({q, k, v}, call("reshape", {rows}, {{"newshape", Ints{40, 64}}})));
}

}  // namespace
}  // namespace collage::native
