// A hundred random modules; long_random_modules_test.cc has two thousand.
#include <gtest/gtest.h>

#include "random_modules/check_modules.h"

namespace collage::testing {
namespace {

constexpr size_t kOfPart = 50;

class RandomModules : public ::testing::TestWithParam<size_t> {};

TEST_P(RandomModules, AreReadBackPlannedAndCompiled) {
  const CheckedModules checked = check_modules(GetParam() * kOfPart, kOfPart);
  EXPECT_GT(checked.planned, 30U);
  EXPECT_GT(checked.refused + checked.copies, 2U);
  EXPECT_GT(checked.control, 15U);
  EXPECT_GT(checked.functions, 8U);
  EXPECT_GT(checked.programs, 8U);
  EXPECT_GT(checked.tuples, 15U);
}
INSTANTIATE_TEST_SUITE_P(Parts, RandomModules, ::testing::Values(0, 1));

}  // namespace
}  // namespace collage::testing
