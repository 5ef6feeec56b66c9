// The matrix unit's peak, which its kernels are held against.
#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

TEST_F(MatrixUnit, ItsPeakCountsProductsOfBfloat16) {
  const auto probe = amx_backend().traits().peak_probe;
  ASSERT_TRUE(probe);
  EXPECT_DOUBLE_EQ(probe->flops_per_round, 4 * 2.0 * 16 * 16 * 32);  // four tiles a round
  probe->run(3);
}

}  // namespace
}  // namespace collage::testing
