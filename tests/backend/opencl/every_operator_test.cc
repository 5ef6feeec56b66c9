// Every case of every operator that opencl takes, in every variant, against the interpreter.
#include <iterator>
#include <set>
#include <sstream>

#include "check.h"

namespace collage::opencl {
namespace {

// Those of which it takes no case.
const std::set<std::string> kRefused = [] {
  std::istringstream names(
      "acos acosh all any argmax argmin asin asinh atan atanh bitwise_and bitwise_not "
      "bitwise_or bitwise_xor cosh cumsum floor_mod gather gather_nd isinf isnan "
      "left_shift logical_xor mod nn.batch_norm nn.celu nn.conv1d_transpose "
      "nn.conv2d_transpose nn.conv3d_transpose nn.group_norm nn.instance_norm "
      "nn.l2_normalize nn.lrn nn.selu nn.shrink one_hot reverse_sequence right_shift "
      "scatter_elements scatter_nd sign sinh tan topk random.normal random.uniform "
      "reinterpret vision.roi_align");
  return std::set<std::string>(std::istream_iterator<std::string>(names), {});
}();

class EveryOperatorTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOperatorTest, MatchesTheReference) {
  REQUIRE_DEVICE();
  testing::check_operator(staged_backend(), first_device(), GetParam(), kRefused,
                          [](const Function& function, const std::vector<Tensor>& inputs) {
                            check_with_inputs(function, inputs);
                          });
}

INSTANTIATE_TEST_SUITE_P(Operators, EveryOperatorTest,
                         ::testing::ValuesIn(testing::operators_with_cases()),
                         testing::test_name_of_operator);

}  // namespace
}  // namespace collage::opencl
