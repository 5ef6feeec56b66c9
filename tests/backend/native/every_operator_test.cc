// Every case of every operator that native takes, in every variant, against the interpreter.
#include <set>

#include "backend/check.h"
#include "backend/emitted_operators.h"
#include "backend/native/native_backend.h"
#include "check.h"

namespace collage::native {
namespace {

// Those of which it takes no case.
const std::set<std::string> kRefused = testing::operators_not_emitted();

class EveryOperatorTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOperatorTest, MatchesTheReference) {
  testing::check_operator(*make_native_backend(), Target{"native", {}, {}}, GetParam(), kRefused,
                          [](const Function& function, const std::vector<Tensor>& inputs) {
                            check_with_inputs(function, inputs);
                          });
}

INSTANTIATE_TEST_SUITE_P(Operators, EveryOperatorTest,
                         ::testing::ValuesIn(testing::operators_with_cases()),
                         testing::test_name_of_operator);

}  // namespace
}  // namespace collage::native
