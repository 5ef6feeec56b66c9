// Every case that amx takes of the operators it computes, in every variant, against the
// interpreter.
#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

class AmxOperators : public ::testing::TestWithParam<std::string> {};

TEST_P(AmxOperators, MatchTheReference) {
  check_operator(amx_backend(), {"amx", {}, {}}, GetParam(), {},
                 [](const Function& function, const std::vector<Tensor>& inputs) {
                   check_amx(function, inputs);
                 });
}

INSTANTIATE_TEST_SUITE_P(Operators, AmxOperators,
                         ::testing::Values("nn.attention", "nn.conv2d", "nn.conv2d_transpose",
                                           "nn.dense", "nn.matmul"),
                         test_name_of_operator);

}  // namespace
}  // namespace collage::testing
