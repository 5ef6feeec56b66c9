// Every case of every operator that opencl takes, in every variant, against the interpreter.
#include <set>

#include "backend/emitted_operators.h"
#include "check.h"

namespace collage::opencl {
namespace {

// Those of which it takes no case.
const std::set<std::string> kRefused = [] {
  std::set<std::string> refused = testing::operators_not_emitted();
  refused.insert({"scatter_elements", "scatter_nd", "image.grid_sample"});
  return refused;
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
