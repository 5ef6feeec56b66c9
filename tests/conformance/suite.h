// The ONNX test suite in a folder, and what is expected of its cases.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace collage {

// Debian's libonnx-testdata, or the folder in $COLLAGE_ONNX_SUITE.
std::filesystem::path onnx_suite();
inline constexpr const char* kGroups[] = {"node", "simple", "pytorch-converted",
                                          "pytorch-operator"};
bool has_group(const std::string& group);
// "node/test_abs" …, sorted.
std::vector<std::string> case_names(const std::string& group);

// Of the interpreter: expectations.txt, or $COLLAGE_ONNX_EXPECTATIONS. By the case's name.
struct Expectation {
  std::string outcome, reason;
};
using Expectations = std::map<std::string, Expectation>;
Expectations read_expectations();
void write_expectations(const Expectations& entries);

// What is known to fail on some target and not in the interpreter: expectations_backends.txt, a
// line "TARGET NAME reason" each. By name: the targets.
std::map<std::string, std::set<std::string>> read_known_failures();

}  // namespace collage
