// Bounds that stand for costs until somebody measures.
#include "cost/analytic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text_parser.h"
#include "ops/registry.h"

namespace collage {
namespace {

double least(const char* text, int threads = 1, double speedup = 1) {
  register_all_ops();
  const Result<Function> function = parse_function(text);
  EXPECT_TRUE(function.ok()) << function.status().to_string();
  return least_kernel_seconds(*function, threads, speedup);
}

constexpr const char* kProduct = R"(#[version = "0.0.5"]
fn (%a: Tensor[(512, 512), float32], %b: Tensor[(512, 512), float32]) { nn.matmul(%a, %b) })";

TEST(LeastKernelSeconds, FallWithThreadsAndFasterArithmetic) {
  const double one = least(kProduct);
  EXPECT_GT(one, 2.0 * 512 * 512 * 512 / 1e12) << "no core of today does a teraflop in float32";
  EXPECT_DOUBLE_EQ(least(kProduct, 2), one / 2);
  EXPECT_DOUBLE_EQ(least(kProduct, 1, 2), one / 2);
}

TEST(LeastKernelSeconds, CountAQuarterOfAConvolutionOverAnImage) {
  const auto convolution = [](const char* kernel, const char* padding) {
    return fmt::format(R"(#[version = "0.0.5"]
fn (%x: Tensor[(1, 256, 32, 32), float32], %w: Tensor[(256, 256, {0}), float32]) {{
  nn.conv2d(%x, %w, padding=[{1}], channels=256, kernel_size=[{0}]) }})",
                       kernel, padding);
  };
  const double pointwise = least(convolution("1, 1", "0, 0, 0, 0").c_str());
  const double spatial = least(convolution("3, 3", "1, 1, 1, 1").c_str());
  EXPECT_NEAR(spatial / pointwise, 9.0 / 4, 1e-6);
}

TEST(LeastKernelSeconds, CountFewerOperationsOfQuantisedProducts) {
  const char* product = R"(#[version = "0.0.5"]
fn (%a: Tensor[(512, 512), uint8], %b: Tensor[(512, 512), int8]) {
  qnn.matmul(%a, %b, 0.1f, 3, 0.1f, 0) })";
  const double quantised = least(product), real = least(kProduct);
  EXPECT_LE(quantised, real / 4);
  EXPECT_GE(quantised, real / 32);
}

TEST(LeastKernelSeconds, AreThoseOfBytesWhereThereIsLittleArithmetic) {
  const char* sum = R"(#[version = "0.0.5"]
fn (%a: Tensor[(1024, 1024), float32], %b: Tensor[(1024, 1024), float32]) { add(%a, %b) })";
  EXPECT_NEAR(least(sum), 3 * 4.0 * 1024 * 1024 / 200e9, 1e-9);
  EXPECT_DOUBLE_EQ(least(sum, 1, 8), least(sum)) << "no arithmetic moves bytes faster";
}

}  // namespace
}  // namespace collage
