#include "conformance/suite.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test_paths.h"

namespace collage {

namespace {

std::filesystem::path from_environment(const char* name, const std::filesystem::path& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::filesystem::path(value) : fallback;
}

const std::filesystem::path kHere = std::filesystem::path(COLLAGE_TESTS_DIR) / "conformance";

std::filesystem::path expectations_file() {
  return from_environment("COLLAGE_ONNX_EXPECTATIONS", kHere / "expectations.txt");
}

// Two words of each line and the rest of it.
template <typename Add>
void read_lines(const std::filesystem::path& path, const Add& add) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string first, second, rest;
    words >> first >> second >> std::ws;
    std::getline(words, rest);
    add(first, second, rest);
  }
}

}  // namespace

std::filesystem::path onnx_suite() {
  return from_environment("COLLAGE_ONNX_SUITE", "/usr/share/libonnx-testdata/data");
}

bool has_group(const std::string& group) {
  return std::filesystem::is_directory(onnx_suite() / group);
}

std::vector<std::string> case_names(const std::string& group) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(onnx_suite() / group))
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(group + "/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Expectations read_expectations() {
  Expectations result;
  read_lines(expectations_file(),
             [&](const std::string& outcome, const std::string& name, const std::string& reason) {
               result[name] = {outcome, reason};
             });
  return result;
}

void write_expectations(const Expectations& entries) {
  std::ofstream file(expectations_file());
  file
      << "# What each case of the ONNX test suite does here; see conformance_test.cc.\n"
         "# pass: imported as it is. constant: passes once inputs that decide shapes are given as\n"
         "# constants. stages: imported in stages, as it runs. unsupported: refused by the "
         "importer.\n"
         "# fail: known to be wrong.\n";
  for (const auto& [name, entry] : entries)
    file << entry.outcome << " " << name << (entry.reason.empty() ? "" : " ") << entry.reason
         << "\n";
}

std::map<std::string, std::set<std::string>> read_known_failures() {
  std::map<std::string, std::set<std::string>> result;
  read_lines(kHere / "expectations_backends.txt",
             [&](const std::string& target, const std::string& name, const std::string&) {
               result[name].insert(target);
             });
  return result;
}

}  // namespace collage
