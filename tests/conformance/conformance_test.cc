// The ONNX test suite (Debian's libonnx-testdata) against tests/conformance/expectations.txt, which
// has one line a case: "pass NAME", "constant NAME", "unsupported NAME reason" or "fail NAME
// reason". A case that does other than its line says fails the test, whichever way it changed. With
// COLLAGE_UPDATE_EXPECTATIONS=1 the file is written anew, for review.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "conformance/onnx_case.h"
#include "test_paths.h"

namespace collage {
namespace {

std::filesystem::path from_environment(const char* name, const std::filesystem::path& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::filesystem::path(value) : fallback;
}

const std::filesystem::path kSuite =
    from_environment("COLLAGE_ONNX_SUITE", "/usr/share/libonnx-testdata/data");
const std::filesystem::path kExpectations =
    from_environment("COLLAGE_ONNX_EXPECTATIONS",
                     std::filesystem::path(COLLAGE_TESTS_DIR) / "conformance" / "expectations.txt");

struct Expectation {
  std::string outcome, reason;
};

std::map<std::string, Expectation> read_expectations() {
  std::map<std::string, Expectation> result;
  std::ifstream file(kExpectations);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Expectation entry;
    std::string name;
    words >> entry.outcome >> name >> std::ws;
    std::getline(words, entry.reason);
    result[name] = entry;
  }
  return result;
}

std::vector<std::string> case_names(const std::string& group) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSuite / group))
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(group + "/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool updating() {
  const char* flag = std::getenv("COLLAGE_UPDATE_EXPECTATIONS");
  return flag != nullptr && std::string(flag) == "1";
}

void write_expectations(const std::map<std::string, Expectation>& entries) {
  std::ofstream file(kExpectations);
  file
      << "# What each case of the ONNX test suite does here; see conformance_test.cc.\n"
         "# pass: imported as it is. constant: passes once inputs that decide shapes are given as\n"
         "# constants. unsupported: refused by the importer. fail: known to be wrong.\n";
  for (const auto& [name, entry] : entries)
    file << entry.outcome << " " << name << (entry.reason.empty() ? "" : " ") << entry.reason
         << "\n";
}

class Conformance : public ::testing::TestWithParam<const char*> {};

TEST_P(Conformance, EveryCaseDoesWhatIsExpected) {
  const std::string group = GetParam();
  ASSERT_TRUE(std::filesystem::is_directory(kSuite / group))
      << "the ONNX test suite is not in " << kSuite << ": install libonnx-testdata";
  std::map<std::string, Expectation> expectations = read_expectations();
  std::map<std::string, int> counts;
  for (const std::string& name : case_names(group)) {
    SCOPED_TRACE(name);
    const CaseResult result = run_onnx_case(kSuite / name);
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
    if (name.rfind(group + "/", 0) == 0 && !std::filesystem::exists(kSuite / name / "model.onnx"))
      ADD_FAILURE() << name << " is listed but not in the suite";
  for (const auto& [outcome, count] : counts)
    std::cout << "  " << group << ": " << count << " " << outcome << "\n";
}

INSTANTIATE_TEST_SUITE_P(Suite, Conformance,
                         ::testing::Values("node", "simple", "pytorch-converted",
                                           "pytorch-operator"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace collage
