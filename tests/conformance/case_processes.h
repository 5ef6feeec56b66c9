// Cases of the ONNX test suite through the whole pipeline (pipeline.h), in a process apart that
// runs one after the other. A case that ends the process, or says nothing for too long, has
// crashed; a new process goes on with the next.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "conformance/onnx_case.h"

namespace collage {

struct ProcessedCase {
  std::string name;
  CaseResult result;
  bool crashed = false;            // `result` says how
  std::set<std::string> backends;  // of its kernels
};

// In place of a name: the process ends there, for the test of what follows.
inline constexpr const char* kCrash = "crash";

// `names` are folders below `suite`. `targets` as the flag `--targets` has them; "" are the default
// ones.
std::vector<ProcessedCase> run_in_processes(const std::filesystem::path& suite,
                                            const std::vector<std::string>& names,
                                            const std::string& targets);

// What such a process does, where the program's arguments say that it is one: gives its exit
// status.
bool is_case_process(int argc, char** argv);
int run_case_process(char** argv);

}  // namespace collage
