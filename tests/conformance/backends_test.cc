// The ONNX test suite on the default targets, and what the process that runs cases makes of one
// that crashes.
#include <gtest/gtest.h>

#include "conformance/backend_check.h"
#include "conformance/case_processes.h"
#include "conformance/suite.h"

namespace collage {
namespace {

TEST(Backends, DefaultOnesDoWhatTheInterpreterDoes) { check_suite_on(kDefault); }

TEST(CaseProcesses, ACrashIsThatCasesAloneAndTheNextOnesRun) {
  const std::vector<ProcessedCase> done = run_in_processes(
      onnx_suite(), {"node/test_abs", kCrash, kCrash, "node/nowhere", "node/test_relu"}, "native");
  ASSERT_EQ(done.size(), 5U);
  for (size_t i : {0U, 4U}) {
    EXPECT_EQ(done[i].result.outcome, Outcome::kPass) << done[i].result.reason;
    EXPECT_FALSE(done[i].crashed);
    EXPECT_TRUE(done[i].backends.contains("native"));
  }
  for (size_t i : {1U, 2U}) {
    EXPECT_TRUE(done[i].crashed);
    EXPECT_EQ(done[i].result.outcome, Outcome::kFail);
    EXPECT_EQ(done[i].result.reason, "ended by signal 6 (Aborted)");
  }
  EXPECT_EQ(done[3].result.outcome, Outcome::kFail);
  EXPECT_FALSE(done[3].crashed);
}

}  // namespace
}  // namespace collage
