// Every case of every operator that native claims, in every variant, against the interpreter.
#include <algorithm>
#include <set>

#include "check.h"
#include "ops/cases.h"
#include "ops/registry.h"

namespace collage::native {
namespace {

class EveryOperatorTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> operators() {
  std::set<std::string> names;
  for (const OpCase& c : op_cases()) names.insert(c.op);
  return {names.begin(), names.end()};
}

TEST_P(EveryOperatorTest, MatchesTheReference) {
  register_all_ops();
  size_t claimed = 0;
  for (const OpCase& c : op_cases(GetParam())) {
    SCOPED_TRACE(c.to_string());
    auto built = build_case(c, 5);
    ASSERT_TRUE(built.ok()) << built.status().message();
    if (!check_supported(built.value().function)) continue;
    ++claimed;
    check_with_inputs(built.value().function, built.value().inputs);
  }
  if (claimed == 0) GTEST_SKIP() << "native claims no case of it";
}

INSTANTIATE_TEST_SUITE_P(Operators, EveryOperatorTest, testing::ValuesIn(operators()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace collage::native
