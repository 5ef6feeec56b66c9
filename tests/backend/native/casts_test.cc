// Casts of what the other type does not hold, by vectors of either width and by their rests.
#include "backend/casts_at_limits.h"
#include "check.h"

namespace collage::native {
namespace {

TEST(Casts, OfWhatTheTypeDoesNotHoldAreTheReferences) {
  int taken = 0;
  for (const testing::CastAtLimits& cast : testing::casts_at_limits()) {
    SCOPED_TRACE(cast.name);
    if (!check_supported(cast.function)) continue;
    ++taken;
    check_with_inputs(cast.function, {cast.input}, {.integers = true, .every_width = true});
  }
  // float32, half precision, and integers but unsigned ones of 32 and 64 bits
  EXPECT_GE(taken, 72);
}

}  // namespace
}  // namespace collage::native
