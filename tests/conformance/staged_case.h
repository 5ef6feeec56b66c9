// A case whose shapes only a run tells: imported and run in stages, as dynamic programs are.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/onnx_case.h"

namespace collage {

// Inputs in the model's order. `compute` runs each stage.
Result<std::vector<Tensor>> run_in_stages(const std::filesystem::path& model,
                                          const std::vector<Tensor>& inputs,
                                          const Compute& compute);

}  // namespace collage
