// Estimates of kernels that nobody measured, by what others of their target were seen to take.
#include "cost/scaled_bounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text_parser.h"
#include "ops/registry.h"

namespace collage {
namespace {

const Target kTarget{"nobody", {}, {}};  // a kind without a backend: arithmetic at the plain rate

Function parsed(const std::string& body, int rows = 256) {
  register_all_ops();
  Result<Function> function =
      parse_function(fmt::format("#[version = \"0.0.5\"]\nfn (%a: Tensor[({0}, 256), float32], %b: "
                                 "Tensor[(256, 256), float32], "
                                 "%c: Tensor[({0}, 256), float32]) {{ {1} }}",
                                 rows, body));
  EXPECT_TRUE(function.ok()) << function.status().to_string();
  return *function;
}

class Bounds : public ::testing::Test {
 protected:
  double ideal(const Function& function) { return least_kernel_seconds(function, 1, 1); }
  double least(const Function& function) { return bounds_.least(function, kTarget); }
  // That a kernel of the function takes so many times the bound.
  void learn(const Function& function, double ratio, bool lowered = false) {
    TargetCosts costs;
    costs.target = kTarget.to_string();
    const double seconds = ratio * ideal(function);
    Variant variant = Variant::plain("only", function);
    if (lowered) variant.rounding = rounding::kBFloat16;
    costs.variants.push_back({variant, Measured{seconds, seconds, seconds, 9}});
    bounds_.learn(function, std::to_string(texts_++), costs);
  }

  ScaledBounds bounds_{1};
  int texts_ = 0;
};

TEST_F(Bounds, AreIdealWhereNothingLikeItIsKnown) {
  const Function product = parsed("nn.matmul(%a, %b)");
  EXPECT_EQ(least(product), ideal(product));
  learn(parsed("nn.matmul(%a, %b)", 128), 5);
  EXPECT_EQ(least(product), ideal(product)) << "another shape";
  learn(product, 5, true);
  EXPECT_EQ(least(product), ideal(product)) << "lowered kernels tell of lowered ones";
}

TEST_F(Bounds, FollowTheBestKernelWithTheSameAnchors) {
  const Function product = parsed("nn.matmul(%a, %b)");
  learn(parsed("nn.relu(nn.matmul(%a, %b))"), 3);
  EXPECT_NEAR(least(product) / ideal(product), 3, 1e-9);
  learn(parsed("add(nn.matmul(%a, %b), %c)"), 2);
  EXPECT_NEAR(least(product) / ideal(product), 2, 1e-9);
  const Function alone = parsed("nn.relu(%a)");
  EXPECT_EQ(least(alone), ideal(alone));
  learn(parsed("tanh(nn.matmul(%a, %b))"), 0.5);
  EXPECT_EQ(least(product), ideal(product)) << "never below the ideal";
}

TEST_F(Bounds, OfElementwiseKernelsFollowAFewOthers) {
  const Function sum = parsed("add(%a, %c)");
  learn(parsed("nn.relu(%a)"), 4);
  learn(parsed("tanh(%a)"), 6);
  EXPECT_EQ(least(sum), ideal(sum)) << "two are too few";
  learn(parsed("exp(%a)"), 8);
  EXPECT_NEAR(least(sum) / ideal(sum), 4, 1e-9);
}

TEST_F(Bounds, OfSeveralAnchorsFollowTheBestOfEach) {
  const Function both = parsed("nn.matmul(nn.softmax(%a), %b)");
  learn(parsed("nn.matmul(%a, %b)"), 3);
  EXPECT_EQ(least(both), ideal(both)) << "nothing is known of the other";
  learn(parsed("nn.softmax(%a)"), 5);
  EXPECT_NEAR(least(both) / ideal(both), 3, 1e-9);
  learn(both, 2);
  EXPECT_NEAR(least(both) / ideal(both), 2, 1e-9);
}

TEST_F(Bounds, ReplaceWhatWasKnownOfAFunction) {
  const Function product = parsed("nn.matmul(%a, %b)");
  learn(product, 2);
  texts_ = 0;  // the same function, measured again
  learn(product, 4);
  EXPECT_NEAR(least(product) / ideal(product), 4, 1e-9);
}

}  // namespace
}  // namespace collage
