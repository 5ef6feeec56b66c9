// Casts of what the other type does not hold.
#include "backend/casts_at_limits.h"
#include "check.h"

namespace collage::opencl {
namespace {

TEST(Casts, OfWhatTheTypeDoesNotHoldAreTheReferences) {
  REQUIRE_DEVICE();
  int taken = 0;
  for (const testing::CastAtLimits& cast : testing::casts_at_limits()) {
    SCOPED_TRACE(cast.name);
    if (!staged_backend().variants(cast.function, first_device(), {2, ""}).ok()) continue;
    ++taken;
    check_with_inputs(cast.function, {cast.input});
  }
  EXPECT_GE(taken, 42);  // float32, and integers but unsigned ones of 32 and 64 bits
}

}  // namespace
}  // namespace collage::opencl
