// A module over symbols (frontend/script/symbolic_module.h) as what a dynamic program is compiled
// from: one stage, an instance of the module for the shapes of its inputs.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "frontend/onnx/staged/stages.h"

namespace collage {

// Text without symbols is a module for one combination of shapes.
Result<std::shared_ptr<frontend::StageSource>> open_symbolic(const std::filesystem::path& path);

}  // namespace collage
