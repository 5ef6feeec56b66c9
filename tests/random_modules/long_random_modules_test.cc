// Two thousand random modules. Another offset of seeds: COLLAGE_RANDOM_MODULES_FROM.
#include <gtest/gtest.h>

#include <cstdlib>

#include "random_modules/check_modules.h"

namespace collage::testing {
namespace {

constexpr size_t kParts = 8, kOfPart = 250;

class LongRandomModules : public ::testing::TestWithParam<size_t> {};

TEST_P(LongRandomModules, AreReadBackPlannedAndCompiled) {
  const char* from = std::getenv("COLLAGE_RANDOM_MODULES_FROM");
  const uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1000;
  const CheckedModules checked = check_modules(first + GetParam() * kOfPart, kOfPart);
  EXPECT_GT(checked.planned, kOfPart / 2);
}
INSTANTIATE_TEST_SUITE_P(Parts, LongRandomModules, ::testing::Range(size_t{0}, kParts));

}  // namespace
}  // namespace collage::testing
