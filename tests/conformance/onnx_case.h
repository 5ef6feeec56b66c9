// One case of the ONNX test suite: a folder with model.onnx and
// test_data_set_N/{input,output}_N.pb. It is imported, run and compared with the expected outputs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace collage {

enum class Outcome {
  kPass,         // imported as it is
  kConstant,     // passes once inputs that decide shapes are given as constants
  kStages,       // passes where it is imported in stages, as it runs
  kUnsupported,  // refused by the importer, with a reason
  kFail,         // wrong values, or an error that is not "unsupported"
};
const char* outcome_name(Outcome outcome);  // "pass", "constant", "stages", "unsupported", "fail"

struct CaseResult {
  Outcome outcome = Outcome::kFail;
  std::string reason;  // empty for a pass
};

// By the reference interpreter, as imported and simplified.
CaseResult run_onnx_case(const std::filesystem::path& folder);

// By whoever computes the outputs of the simplified module's main.
using Compute = std::function<Result<std::vector<Tensor>>(const Module& simplified,
                                                          const std::vector<Tensor>& inputs)>;
CaseResult run_onnx_case(const std::filesystem::path& folder, const Compute& compute);

}  // namespace collage
