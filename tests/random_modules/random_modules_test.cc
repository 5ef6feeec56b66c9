// A hundred random modules; long_random_modules_test.cc has two thousand.
#include <gtest/gtest.h>

#include "random_modules/check_modules.h"

namespace collage::testing {
namespace {

TEST(RandomModules, AreReadBackPlannedAndCompiled) {
  const CheckedModules checked = check_modules(0, 100);
  EXPECT_GT(checked.planned, 60U);
  EXPECT_GT(checked.refused, 1U);
  EXPECT_GT(checked.copies, 5U);
  EXPECT_GT(checked.control, 40U);
  EXPECT_GT(checked.functions, 20U);
  EXPECT_GT(checked.programs, 20U);
  EXPECT_GT(checked.tuples, 40U);
}

}  // namespace
}  // namespace collage::testing
