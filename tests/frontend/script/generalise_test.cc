// Families: what instances have in common, and what they must not differ in.
#include "frontend/script/generalise.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/script/script.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ops/registry.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

std::string family(const std::vector<std::string>& symbols,
                   const std::function<std::string(const Symbols&)>& text) {
  register_all_ops();
  const Result<SymbolicModule> made =
      generalise(symbols, [&](const Symbols& sizes) { return parse_module_text(text(sizes)); });
  return made.ok() ? made->text() : made.status().to_string();
}

std::string body(const std::string& text) {
  const size_t start = text.find("def @main");
  return start == std::string::npos ? text : text.substr(start);
}

TEST(Generalise, IntegersThatDifferBecomeTerms) {
  EXPECT_EQ(body(family({"n", "m"},
                        [](const Symbols& sizes) {
                          const int64_t n = sizes.at("n"), m = sizes.at("m");
                          return fmt::format(
                              "def @main(%x: Tensor[({0}, 3, {1}), float32]) {{\n"
                              "  %0 = reshape(%x, newshape=[{2}, 3]);\n"
                              "  nn.pad(%0, 0f, pad_width=[[{3}, 2], [0, 0]])\n}}\n",
                              n, m, n * m, (n + 1) / 2);
                        })),
            "def @main(%x: Tensor[(n, 3, m), float32]) -> Tensor[((2 * n * m + n + 5) / 2, 3), "
            "float32] {\n"
            "  %0 = reshape(%x, newshape=[n * m, 3]);\n"
            "  nn.pad(%0, 0f, pad_width=[[(n + 1) / 2, 2], [0, 0]])\n}\n");
}

TEST(Generalise, ScalarsAndRealAttributesMayBeTerms) {
  const std::string text = family({"n"}, [](const Symbols& sizes) {
    return fmt::format(
        "def @main(%x: Tensor[({0}), int64], %y: Tensor[({0}), float32]) {{\n"
        "  (add(%x, {1}i64), multiply({0}f, clip(%y, a_min=0f, a_max={0}f)), subtract(1i64, %x))"
        "\n}}\n",
        sizes.at("n"), 2 * sizes.at("n"));
  });
  EXPECT_THAT(text, HasSubstr("add(%x, {2 * n}i64)"));
  EXPECT_THAT(text, HasSubstr("clip(%y, a_min=0f, a_max=n)"));
  EXPECT_THAT(text, HasSubstr("({n}f, "));
  EXPECT_THAT(text, HasSubstr("subtract(1i64, %x)"));
  const Result<SymbolicModule> read = SymbolicModule::parse(text);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  const std::string instance = to_text(*read->instantiate({{"n", 5}}));
  EXPECT_THAT(instance, HasSubstr("add(%x, 10i64)"));
  EXPECT_THAT(instance, HasSubstr("a_max=5f"));
}

// A slice of what has 40 rows: no size above fits, and results may be no polynomials.
std::string sliced(const Symbols& sizes, int64_t end) {
  return fmt::format(
      "def @main(%x: Tensor[({0}, 2), float32], %y: Tensor[(40, 2), float32]) {{\n"
      "  %0 = strided_slice(%y, begin=[0], end=[{1}], axes=[0]);\n"
      "  add(%x, %0)\n}}\n",
      sizes.at("n"), end);
}

TEST(Generalise, SizesThatDoNotFitAreLeftOut) {
  const std::string text =
      family({"n"}, [](const Symbols& sizes) { return sliced(sizes, sizes.at("n")); });
  EXPECT_THAT(text, HasSubstr("end=[n], axes=[0]"));
  EXPECT_THAT(text, HasSubstr("%x: Tensor[(n, 2), float32]"));
}

TEST(Generalise, ResultsWithoutATermAreNotStated) {
  EXPECT_EQ(body(family({"n"},
                        [](const Symbols& sizes) {
                          return fmt::format(
                              "def @main(%x: Tensor[({0}), float32]) {{\n"
                              "  strided_slice(%x, begin=[0], end=[50], strides=[3])\n}}\n",
                              sizes.at("n"));
                        })),
            "def @main(%x: Tensor[(n), float32]) {\n"
            "  strided_slice(%x, begin=[0], end=[50], strides=[3])\n}\n");
}

TEST(Generalise, WhatOneSymbolBoundsIsATerm) {
  const std::string text = family({"n", "m"}, [](const Symbols& sizes) {
    const int64_t most = std::min<int64_t>(2 * sizes.at("m") + 4, 300);
    return fmt::format(
        "def @main(%x: Tensor[({0}, {1}), float32]) {{\n  full(1f, shape=[{0}, {2}])\n}}\n",
        sizes.at("n"), sizes.at("m"), most);
  });
  EXPECT_THAT(text, HasSubstr("full(1f, shape=[n, min(2 * m + 4, 300)])"));
}

TEST(Generalise, TermsHoldForAllSizesThatAreLookedAt) {
  const std::string wrong = family({"n"}, [](const Symbols& sizes) {
    return fmt::format(
        "def @main(%x: Tensor[({0}), float32]) {{\n"
        "  full(1f, shape=[{1}, {1}])\n}}\n",
        sizes.at("n"), sizes.at("n") + (sizes.at("n") > 600 ? 1 : 0));
  });
  EXPECT_EQ(wrong,
            "no term over sizes is 2 with n = 2, and what it is with others: 'full(1f, "
            "shape=[2, 2])'");
}

TEST(Generalise, FamiliesDifferInIntegersAlone) {
  EXPECT_EQ(family({"n"},
                   [](const Symbols& sizes) {
                     return fmt::format("def @main(%x: Tensor[({0}), float32]) {{\n  {1}(%x)\n}}\n",
                                        sizes.at("n"), sizes.at("n") % 5 == 0 ? "exp" : "tanh");
                   }),
            "with n = 2 and with n = 5 it differs: 'tanh(%x)' is 'exp(%x)'");
  EXPECT_THAT(family({"n"},
                     [](const Symbols& sizes) {
                       return fmt::format(
                           "def @main(%x: Tensor[({0}), float32]) {{\n  multiply(%x, {0}.5f)\n}}\n",
                           sizes.at("n"));
                     }),
              HasSubstr("it differs: 'multiply(%x, 2.5f)' is 'multiply(%x, 3.5f)'"));
  EXPECT_THAT(family({"n"},
                     [](const Symbols& sizes) {
                       return fmt::format(
                           "def @main(%x: Tensor[({0}), int64]) {{\n"
                           "  take(%x, meta[relay.Constant][0])\n}}\n"
                           "#[metadata]\n{{\"relay.Constant\": [{{\"dtype\": \"int64\", "
                           "\"shape\": [2], \"values\": [0, {1}]}}]}}\n",
                           sizes.at("n"), sizes.at("n") - 1);
                     }),
              HasSubstr("a constant holds 1 with n = 2, and something else with other sizes"));
}

TEST(Generalise, ErrorsOfTheSmallestSizesAreTold) {
  EXPECT_THAT(family({"n"},
                     [](const Symbols&) {
                       return std::string("def @main(%x: Tensor[(2), float32]) { nothing(%x) }");
                     }),
              HasSubstr("unknown operator"));
}

TEST(Generalise, AnInstanceIsWhatIsMadeForThatSize) {
  register_all_ops();
  const MakeModule make = [](const Symbols& sizes) {
    return parse_module_text(sliced(sizes, sizes.at("n")));
  };
  const Result<SymbolicModule> made = generalise({"n"}, make);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  for (const int64_t n : {1, 2, 13, 40})
    EXPECT_TRUE(structural_equal(made->instantiate({{"n", n}})->main(), make({{"n", n}})->main()));
  EXPECT_FALSE(made->instantiate({{"n", 41}}).ok());
}

}  // namespace
}  // namespace collage::tensor_program
