// What kernels are expected to take that nobody measured, by those that were.
#include "cost/kernel_estimates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/planted_kernel.h"

namespace collage {
namespace {

constexpr MachineSpeed kSpeed{2e11, 2e10};

// A target whose products reach half of the peak, but for 5 µs a call.
double product_seconds(const KernelWork& work) {
  return 5e-6 + 2 * work.operations / kSpeed.float32 + work.constants / kSpeed.memory;
}
double copy_seconds(const KernelWork& work) { return 1e-6 + 3 * work.activations / kSpeed.float32; }

std::vector<KernelEstimates::Sample> samples(double noise) {
  std::vector<KernelEstimates::Sample> all;
  int count = 0;
  for (double size : {1e5, 4e5, 2e6, 9e6, 4e7, 1.5e8}) {
    for (double weights : {0.0, 1e6}) {
      const double sign = (0b011001011010 >> count++ & 1) != 0 ? 1 : -1;
      const KernelWork product{"nn.dense", size * 10, size / 50, weights};
      const KernelWork copy{"concatenate", 0, size, 0};
      all.push_back({"fast", "blocked", product, product_seconds(product) * (1 + sign * noise)});
      all.push_back({"fast", "copy", copy, copy_seconds(copy) * (1 + sign * noise)});
    }
  }
  return all;
}

TEST(KernelEstimates, FindTheCoefficientsOfWhatTheySaw) {
  const KernelEstimates estimates = KernelEstimates::fit(samples(0), kSpeed);
  const KernelWork product{"nn.dense", 3e7, 1e5, 2e6}, copy{"concatenate", 0, 3e6, 0};
  EXPECT_NEAR(*estimates.seconds("fast", "blocked", product, kSpeed) / product_seconds(product), 1,
              1e-3);
  EXPECT_NEAR(*estimates.seconds("fast", "copy", copy, kSpeed) / copy_seconds(copy), 1, 1e-3);
  EXPECT_NEAR(*estimates.seconds("fast", "another", copy, kSpeed) / copy_seconds(copy), 1, 1e-3)
      << "of the family, where nothing is known of the algorithm";
  EXPECT_TRUE(estimates.seconds("fast", "another", {"nn.lrn", 1e6, 1e6, 0}, kSpeed).has_value());
  EXPECT_FALSE(estimates.seconds("another", "copy", copy, kSpeed).has_value());
  EXPECT_FALSE(estimates.seconds("fast", "copy", copy, {}).has_value()) << "no speed is known";
}

TEST(KernelEstimates, ErrByLittleMoreThanWhatTheyWereFittedTo) {
  const KernelEstimates estimates = KernelEstimates::fit(samples(0.2), kSpeed);
  for (const KernelEstimates::Sample& sample : samples(0)) {
    const double ratio =
        *estimates.seconds(sample.target, sample.algorithm, sample.work, kSpeed) / sample.seconds;
    EXPECT_LT(std::abs(std::log(ratio)), std::log(1.3)) << sample.work.family;
  }
}

TEST(KernelEstimates, NeverFallWithMoreWork) {
  // Larger ones that took less.
  std::vector<KernelEstimates::Sample> odd;
  for (int i = 1; i <= 8; ++i) odd.push_back({"odd", "", {"tanh", 1e6 * i, 1e6 * i, 0}, 1e-3 / i});
  const KernelEstimates estimates = KernelEstimates::fit(odd, kSpeed);
  double before = 0;
  for (double size : {1e5, 1e6, 1e7, 1e8}) {
    const double now = *estimates.seconds("odd", "", {"tanh", size, size, 0}, kSpeed);
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(KernelEstimates, AreReadAsTheyWereWritten) {
  const KernelEstimates estimates = KernelEstimates::fit(samples(0.1), kSpeed);
  KernelEstimates read;
  for (const nlohmann::json& line : estimates.to_json())
    EXPECT_TRUE(read.add(parse_json(json_text(line))).ok());
  EXPECT_EQ(read.to_json(), estimates.to_json());
  const KernelWork copy{"concatenate", 0, 3e6, 0};
  EXPECT_NEAR(*read.seconds("fast", "copy", copy, kSpeed) / copy_seconds(copy), 1, 0.2);
  for (const char* line : {"[]", "7", "[\"a\",\"b\",\"c\",1,2,3]", "[\"a\",\"b\",\"c\",1,2,3,-1]",
                           "[\"a\",\"b\",3,1,2,3,1]", "[\"a\",\"b\",\"c\",1,2,3,1e300]"})
    EXPECT_FALSE(read.add(parse_json(line)).ok()) << line;
}

TEST(KernelEstimates, TellFamiliesByTheHeaviestOperator) {
  testing::register_host();
  const Expr x = make_var("x", TensorType{{1, 16, 8, 8}, DType::kFloat32});
  const auto conv = [&](Shape weights, int64_t groups, Ints padding) {
    const Expr w = make_constant(Tensor::zeros(DType::kFloat32, std::move(weights)));
    return make_call("nn.conv2d", {x, w}, {{"padding", padding}, {"groups", groups}}).value();
  };
  const auto family = [&](const Expr& body) {
    const Function function = make_function({x}, make_call("nn.relu", {body}).value());
    return work_of(function, Variant::plain("direct x2", function), CacheState::kCold).family;
  };
  EXPECT_EQ(family(conv({16, 16, 3, 3}, 1, {1, 1, 1, 1})), "nn.conv2d");
  EXPECT_EQ(family(conv({16, 16, 1, 1}, 1, {0, 0, 0, 0})), "nn.conv2d 1x1");
  EXPECT_EQ(family(conv({16, 1, 3, 3}, 16, {1, 1, 1, 1})), "nn.conv2d depthwise");
  EXPECT_EQ(family(conv({16, 4, 3, 3}, 4, {1, 1, 1, 1})), "nn.conv2d grouped");
  const Function relu = testing::unary("nn.relu", {8, 8});
  Variant variant = Variant::plain("direct x2", relu);
  EXPECT_EQ(algorithm_of(variant), "float32 1");
  variant.work = Work::of_winograd(4);
  EXPECT_EQ(algorithm_of(variant), "float32 0.25");
  const KernelWork work = work_of(relu, Variant::plain("a", relu), CacheState::kCold);
  EXPECT_EQ(work.activations, 2 * 8 * 8 * 4);
  EXPECT_EQ(work.constants, 0);
}

}  // namespace
}  // namespace collage
