// Code that serves all shapes of a function (`native -symbolic=only`): against the interpreter for
// many lengths, compiled once.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "backend/native/codegen/code_cache.h"
#include "backend/native/native_backend.h"
#include "backend/native/symbolic/symbolic_kernel.h"
#include "check.h"
#include "tensor_program/program_text.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;

constexpr std::array<int64_t, 32> kLengths{1,  2,  3,   5,   7,   8,   9,   11,  13,  16, 17,
                                           19, 23, 29,  31,  32,  33,  37,  47,  64,  65, 77,
                                           96, 97, 101, 127, 128, 129, 197, 211, 256, 331};

/// The function for each of the lengths is right, and at most so many kernels are compiled for all.
void check_lengths(const std::function<Function(int64_t)>& function_of, int64_t kernels = 1) {
  const int64_t before = compiled_kernels();
  std::vector<std::unique_ptr<Kernel>> kept;  // code goes with the last kernel that has it
  for (const int64_t length : kLengths) {
    SCOPED_TRACE(length);
    const Function function = function_of(length);
    const Target target{"native", {{"symbolic", "only"}}, {}};
    const std::vector<Variant> variants = variants_of(function, kSymbolic);
    ASSERT_FALSE(variants.empty());
    for (const Variant& variant : variants) {
      auto kernel =
          make_native_backend()->compile(function, variant, target, CompileOptions{2, ""});
      ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
      kept.push_back(std::move(kernel).value());
    }
    check_function(function, {.target_options = target.options});
  }
  EXPECT_GE(compiled_kernels() - before, 1);
  EXPECT_LE(compiled_kernels() - before, kernels);
  for (const int64_t length : {7, 33})
    check_function(function_of(length),
                   {.target_options = {{"symbolic", "only"}}, .every_width = true});
}

TEST(Symbolic, SoftmaxOfAnyRows) {
  check_lengths(
      [](int64_t n) {
        const Expr x = var("x", {3, n, n});
        return function({x}, call("nn.softmax", {x}, {{"axis", int64_t{-1}}}));
      },
      2);  // rows of one element have a kernel of their own, which keeps NaN
}

TEST(Symbolic, LayerNorm) {
  const Expr gamma = weights({96}), beta = weights({96});
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n, 96});
    return function(
        {x}, call("nn.layer_norm", {x, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
  });
}

TEST(Symbolic, ChainsOfElementwiseOperators) {
  const Expr bias = weights({48});
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n, 48});
    return function({x}, call("nn.gelu", {call("add", {x, bias})}));
  });
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n * 100});
    return function({x}, call("multiply", {call("tanh", {x}), x}));
  });
}

// What is written once is looked at once, however often it is read.
TEST(Symbolic, SharedValues) {
  const Expr x = var("x", {2, 3, 48});
  Expr y = x;
  for (int i = 0; i < 40; ++i) y = call("multiply", {call("add", {y, x}), y});
  EXPECT_TRUE(program_over_symbols(function({x}, y), kSymbolic, 2).ok());
  y = x;
  for (int i = 0; i < 10; ++i) y = call("nn.gelu", {y});
  const Function gelus = function({x}, y);
  EXPECT_FALSE(symbolic_variants(gelus, 2).empty());
  check_function(gelus, {.target_options = {{"symbolic", "only"}}});
}

// The factor of a mean follows the length.
TEST(Symbolic, Means) {
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {20, n});
    return function({x}, call("mean", {x}, {{"axis", Ints{1}}, {"keepdims", false}}));
  });
}

// One for each tile of rows: it serves no fewer.
TEST(Symbolic, Products) {
  const Expr weight = weights({48, 40}), bias = weights({48});
  constexpr int64_t kTiles = 8;
  check_lengths(
      [&](int64_t n) {
        const Expr x = var("x", {n, 40});
        return function(
            {x}, call("nn.relu", {call("nn.bias_add", {call("nn.dense", {x, weight}), bias})}));
      },
      kTiles);
  // Of a batch, with a residual connection; the weights as they are.
  const Expr plain = weights({40, 64});
  check_lengths(
      [&](int64_t n) {
        const int64_t batch = n % 3 + 1;
        const Expr x = var("x", {batch, n, 40}), y = var("y", {batch, n, 64});
        return function({x, y}, call("add", {y, call("nn.matmul", {x, plain})}));
      },
      kTiles);
}

// Of one row, the mask could be of rows too: that is another program.
TEST(Symbolic, SoftmaxUnderAMask) {
  check_lengths(
      [](int64_t n) {
        const Expr x = var("x", {2, 4, n, 40}), mask = var("mask", {2, 1, 1, 40});
        return function({x, mask},
                        call("nn.softmax", {call("add", {x, mask})}, {{"axis", int64_t{-1}}}));
      },
      2);
}

// Dimensions that every array has side by side are one.
TEST(Symbolic, RowsAreMerged) {
  const auto symbols = [](const Function& function) {
    const auto program = program_over_symbols(function, kSymbolic, 2);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    std::vector<int64_t> values;
    for (const auto& symbol : program->program.symbols) values.push_back(symbol.value);
    return values;
  };
  using Values = std::vector<int64_t>;
  const Expr x = var("x", {2, 3, 5, 7}), mask = var("mask", {2, 1, 1, 7}), y = var("y", {5, 7});
  const Attrs last{{"axis", int64_t{-1}}};
  EXPECT_EQ(symbols(function({x}, call("nn.softmax", {x}, last))), (Values{30, 7}));
  EXPECT_EQ(symbols(function({x, mask}, call("nn.softmax", {call("add", {x, mask})}, last))),
            (Values{2, 15, 7}));
  EXPECT_EQ(symbols(function({x}, call("tanh", {x}))), (Values{210}));
  EXPECT_EQ(symbols(function({x, y}, call("add", {x, y}))), (Values{6, 35}));
}

TEST(Symbolic, StandsBesideTheOthersOrAlone) {
  const auto names = [](const Function& function, const std::string& option) {
    std::map<std::string, std::string> options;
    if (!option.empty()) options["symbolic"] = option;
    std::vector<std::string> found;
    const auto variants = make_native_backend()->variants(function, Target{"native", options, {}},
                                                          CompileOptions{2, ""});
    EXPECT_TRUE(variants.ok());
    for (const Variant& variant : *variants) found.push_back(variant.name);
    return found;
  };
  using Names = std::vector<std::string>;
  const Expr x = var("x", {5, 40});
  const Function rows = function({x}, call("nn.softmax", {x}, {{"axis", int64_t{-1}}}));
  EXPECT_EQ(names(rows, ""), (Names{"rows 1"}));
  EXPECT_EQ(names(rows, "only"), (Names{"symbolic"}));
  const Function tiled = function({x}, call("nn.matmul", {x, weights({40, 32})}));
  const Names tiles = names(tiled, "only");
  EXPECT_EQ(tiles.size(), 2);
  for (const std::string& tile : tiles) EXPECT_THAT(tile, ::testing::StartsWith("symbolic m"));
  // What has none is computed as ever.
  const Function product = function({x}, call("nn.matmul", {x, weights({40, 24})}));
  EXPECT_EQ(names(product, "only"), names(product, ""));
}

TEST(Symbolic, RefusalsSayWhy) {
  const auto refusal = [](const Function& function) {
    const auto program = program_over_symbols(function, kSymbolic, 2);
    return program.ok() ? program->program.to_string() : program.status().to_string();
  };
  const Expr x = var("x", {6, 40});
  EXPECT_THAT(refusal(function({x}, call("transpose", {x}, {{"axes", Ints{1, 0}}}))),
              HasSubstr("native: y0: p0 is not read along its rows"));
  EXPECT_THAT(refusal(function({x}, call("sum", {x}, {{"axis", Ints{0}}, {"keepdims", false}}))),
              HasSubstr("native: s0_sum: p0 is not read along its rows"));
  EXPECT_THAT(refusal(function({x}, call("nn.matmul", {x, weights({40, 8})}))),
              HasSubstr("native: a product of 8 columns over symbols"));
  const Expr w = var("w", {40, 16});
  EXPECT_THAT(refusal(function({x, w}, call("nn.matmul", {x, w}))),
              HasSubstr("native: a product with no constant over symbols"));
  EXPECT_THAT(refusal(function({x}, call("nn.matmul", {call("tanh", {x}), weights({40, 16})}))),
              HasSubstr("native: s0_sum multiplies what is computed"));
  const Expr wide = var("wide", {6, 40}, DType::kInt64);
  EXPECT_THAT(refusal(function({wide}, call("add", {wide, wide}))),
              HasSubstr("native: y0: rows of int64 over symbols"));
}

// Kernels of products, symbolic ones and others, hold one copy of their weights; saved ones too.
TEST(Symbolic, ProductsShareWeights) {
  const Expr x = var("x", {5, 128});
  const Function product = function({x}, call("nn.matmul", {x, weights({128, 160})}));
  const Target target{"native", {{"symbolic", "on"}}, {}};
  const std::unique_ptr<Backend> native = make_native_backend();
  const auto variants = native->variants(product, target, CompileOptions{2, ""});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::set<const void*> held;
  for (const Variant& variant : *variants) {
    EXPECT_EQ(variant.weights, variants->front().weights) << variant.name;
    auto kernel = native->compile(product, variant, target, CompileOptions{2, ""});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    const auto saved = (*kernel)->save();
    ASSERT_TRUE(saved.ok()) << saved.status().to_string();
    ASSERT_EQ(saved->constants.size(), 1);
    held.insert(saved->constants[0].data.get());
    kernels.push_back(std::move(kernel).value());
  }
  EXPECT_EQ(held.size(), 1);
}

// A tile of more rows than there are would begin before the arrays.
TEST(Symbolic, TilesOfMoreRowsAreRefused) {
  const Expr x = var("x", {4, 40});
  const Function product = function({x}, call("nn.matmul", {x, weights({40, 32})}));
  for (const std::string name : {"symbolic m6 n1", "symbolic m5 n1", "symbolic"})
    EXPECT_THAT(program_over_symbols(product, name, 2).status().message(),
                HasSubstr("no schedule '" + name + "'"));
}

// A kernel that was saved is called with the same numbers.
TEST(Symbolic, SavedAndLoaded) {
  const Expr x = var("x", {5, 33});
  const Function rows = function({x}, call("nn.softmax", {x}, {{"axis", int64_t{-1}}}));
  auto kernel = make_native_backend()->compile(rows, scheduled("symbolic", rows, kSymbolic),
                                               Target{"native", {}, {}}, CompileOptions{2, ""});
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  auto saved = (*kernel)->save();
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  EXPECT_NE(saved->description.find("\"number\":33"), std::string::npos) << saved->description;
}

}  // namespace
}  // namespace collage::native
