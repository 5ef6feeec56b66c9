#include "conformance/backend_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "conformance/case_processes.h"
#include "conformance/families.h"
#include "conformance/suite.h"

namespace collage {
namespace {

// Of the cases in no excluded family. What is missing is in the lists of expectations, with
// reasons.
constexpr double kLeastShare = 0.97;

struct Tally {
  int cases = 0, passed = 0, failed = 0, unsupported = 0, crashed = 0;
  int used = 0, used_passed = 0;  // with a kernel of the target; by default of any but the host

  void add(Outcome outcome, bool has_crashed, bool is_used) {
    const bool passes = outcome != Outcome::kFail && outcome != Outcome::kUnsupported;
    ++cases;
    passed += passes;
    crashed += has_crashed;
    failed += outcome == Outcome::kFail && !has_crashed;
    unsupported += outcome == Outcome::kUnsupported;
    used += is_used;
    used_passed += is_used && passes;
  }
  double share() const { return cases > 0 ? static_cast<double>(passed) / cases : 0; }
};

bool is_host(const std::string& name) { return find_backend(name)->traits().is_host; }

bool uses(const ProcessedCase& done, const std::string& target) {
  return std::any_of(done.backends.begin(), done.backends.end(), [&](const std::string& name) {
    if (target == kDefault) return !name.empty() && !is_host(name);
    return name == target || name.starts_with(target + " ");  // with options
  });
}

void add_row(const std::string& target, const Tally& tally) {
  const char* path = std::getenv("COLLAGE_CONFORMANCE_TABLE");
  if (path == nullptr) return;
  const bool is_new = !std::filesystem::exists(path);
  std::ofstream file(path, std::ios::app);
  if (is_new)
    file << "| targets | cases | passed | failed | unsupported | crashed | with a kernel of theirs "
            "| "
            "of these passed |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  file << fmt::format("| {} | {} | {} ({:.1f}%) | {} | {} | {} | {} | {} |\n", target, tally.cases,
                      tally.passed, 100 * tally.share(), tally.failed, tally.unsupported,
                      tally.crashed, tally.used, tally.used_passed);
}

Result<bool> is_excluded(const std::string& name) {
  return TRY(excluded_family(onnx_suite() / name / "model.onnx")) != nullptr;
}

}  // namespace

void check_suite_on(const std::string& target) {
  const Expectations expectations = read_expectations();
  const auto known_failures = read_known_failures();
  std::vector<std::string> names;
  for (const char* group : kGroups) {
    if (!has_group(group)) continue;
    for (std::string& name : case_names(group)) names.push_back(std::move(name));
  }
  ASSERT_GT(names.size(), 900U) << "the ONNX test suite is not in " << onnx_suite();
  register_all();
  Tally tally;
  for (const ProcessedCase& done :
       run_in_processes(onnx_suite(), names, target == kDefault ? "" : target)) {
    const auto expected = expectations.find(done.name);
    ASSERT_NE(expected, expectations.end()) << done.name << " is not listed";
    const std::string outcome = outcome_name(done.result.outcome);
    const auto known = known_failures.find(done.name);
    const bool fails = known != known_failures.end() && known->second.contains(target);
    // Which of the default targets runs a kernel depends on the machine.
    const bool may_fail = known != known_failures.end() && target == kDefault;
    const std::string wanted = fails ? "fail" : expected->second.outcome;
    if (done.crashed || (outcome != wanted && !(may_fail && outcome == "fail")))
      ADD_FAILURE() << done.name << ": expected " << wanted << ", got " << outcome << " "
                    << done.result.reason;
    const Result<bool> excluded = is_excluded(done.name);
    ASSERT_TRUE(excluded.ok()) << excluded.status().to_string();
    if (!*excluded) tally.add(done.result.outcome, done.crashed, uses(done, target));
  }
  EXPECT_GE(tally.share(), kLeastShare) << tally.passed << " of " << tally.cases;
  EXPECT_GT(tally.used, 0);
  EXPECT_EQ(tally.crashed, 0);
  add_row(target, tally);
}

}  // namespace collage
