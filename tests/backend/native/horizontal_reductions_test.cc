// Elements side by side are reduced as a vector that is halved.
#include "backend/native/codegen/horizontal_reductions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "backend/native/codegen/real_limits.h"

namespace collage::native {
namespace {

using Halide::Var;
namespace ir = Halide::Internal;

/// How many lanes each operation that the pass leaves combines.
class CountMaxima : public ir::IRMutator {
 public:
  explicit CountMaxima(std::vector<int>* lanes) : lanes_(lanes) {}

 protected:
  using ir::IRMutator::visit;
  Halide::Expr visit(const ir::Call* op) override {
    if (limit_of(op)) lanes_->push_back(op->type.lanes());
    return ir::IRMutator::visit(op);
  }

 private:
  std::vector<int>* lanes_;
};

/// The largest of `count` neighbours in each of four rows, combined one after the other, as what
/// `order` makes of a position; and the lanes of the operations that combined them.
std::vector<int> lanes_of_maxima(int count, const std::function<int(int)>& order) {
  Halide::Buffer<float> data(64, 4);
  data.for_each_element(
      [&](int x, int y) { data(x, y) = static_cast<float>((x * 37 + y * 11) % 64); });
  Var row("row");
  Halide::Expr largest = data(order(0), row);
  for (int i = 1; i < count; ++i) largest = larger(largest, data(order(i), row));
  Halide::Func result("result");
  result(row) = largest;
  std::vector<int> lanes;
  Halide::Pipeline pipeline(result);
  reduce_horizontally(pipeline);
  pipeline.add_custom_lowering_pass(new CountMaxima(&lanes));
  lower_limits(pipeline);
  const Halide::Buffer<float> got = pipeline.realize({4});
  for (int y = 0; y < 4; ++y) {
    float want = data(order(0), y);
    for (int i = 1; i < count; ++i) want = std::max(want, data(order(i), y));
    EXPECT_EQ(got(y), want);
  }
  std::sort(lanes.begin(), lanes.end());
  return lanes;
}

TEST(HorizontalReductions, HalveAVector) {
  const std::vector<int> halves = {1, 2, 4, 8};
  EXPECT_EQ(lanes_of_maxima(16, [](int i) { return i; }), halves);
  EXPECT_EQ(lanes_of_maxima(16, [](int i) { return 3 + i * 5 % 16; }), halves);
}

TEST(HorizontalReductions, LeaveOthersAlone) {
  const auto alone = [](size_t count) { return std::vector<int>(count, 1); };
  EXPECT_EQ(lanes_of_maxima(7, [](int i) { return i; }), alone(6));        // too few
  EXPECT_EQ(lanes_of_maxima(16, [](int i) { return 2 * i; }), alone(15));  // not side by side
}

}  // namespace
}  // namespace collage::native
