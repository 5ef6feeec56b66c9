// The matrix unit's peak, which its kernels are held against.
#include "backend/amx/check.h"

namespace collage::testing {
namespace {

TEST_F(MatrixUnit, ItsPeakCountsTheProductsOfAFloat32One) {
  const auto three = amx_backend().peak_probe({"amx", {}, {}}),
             six = amx_backend().peak_probe({"amx", {{"parts", "3"}}, {}});
  ASSERT_TRUE(three && six);
  EXPECT_DOUBLE_EQ(three->flops_per_round, 2 * six->flops_per_round);
  EXPECT_DOUBLE_EQ(3 * three->flops_per_round, 4 * 2.0 * 16 * 16 * 32);  // four tiles a round
  three->run(3);
}

}  // namespace
}  // namespace collage::testing
