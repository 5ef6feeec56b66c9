// The ONNX test suite (Debian's libonnx-testdata) against tests/conformance/expectations.txt, which
// has one line a case: "pass NAME", "constant NAME", "unsupported NAME reason" or "fail NAME
// reason". A case that does other than its line says fails the test, whichever way it changed. With
// COLLAGE_UPDATE_EXPECTATIONS=1 the file is written anew, for review.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "conformance/onnx_case.h"
#include "conformance/suite.h"

namespace collage {
namespace {

bool updating() {
  const char* flag = std::getenv("COLLAGE_UPDATE_EXPECTATIONS");
  return flag != nullptr && std::string(flag) == "1";
}

class Conformance : public ::testing::TestWithParam<const char*> {};

TEST_P(Conformance, EveryCaseDoesWhatIsExpected) {
  const std::string group = GetParam();
  ASSERT_TRUE(has_group(group)) << "the ONNX test suite is not in " << onnx_suite()
                                << ": install libonnx-testdata";
  Expectations expectations = read_expectations();
  std::map<std::string, int> counts;
  for (const std::string& name : case_names(group)) {
    SCOPED_TRACE(name);
    const CaseResult result = run_onnx_case(onnx_suite() / name);
    const std::string outcome = outcome_name(result.outcome);
    ++counts[outcome];
    auto expected = expectations.find(name);
    if (updating()) {
      if (expected == expectations.end() || expected->second.outcome != outcome)
        expectations[name] = {outcome, result.reason};
    } else if (expected == expectations.end()) {
      ADD_FAILURE() << name << ": not listed; it does: " << outcome << " " << result.reason;
    } else if (expected->second.outcome != outcome) {
      ADD_FAILURE() << name << ": expected " << expected->second.outcome << ", got " << outcome
                    << " " << result.reason;
    } else if (expected->second.reason.empty() != result.reason.empty()) {
      ADD_FAILURE() << name << ": a line without a reason, or with one too many";
    }
  }
  if (updating()) write_expectations(expectations);
  for (const auto& [name, entry] : expectations)
    if (name.rfind(group + "/", 0) == 0 &&
        !std::filesystem::exists(onnx_suite() / name / "model.onnx"))
      ADD_FAILURE() << name << " is listed but not in the suite";
  for (const auto& [outcome, count] : counts)
    std::cout << "  " << group << ": " << count << " " << outcome << "\n";
}

INSTANTIATE_TEST_SUITE_P(Suite, Conformance, ::testing::ValuesIn(kGroups), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace collage
