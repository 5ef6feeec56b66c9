// A module over symbols (frontend/script/symbolic_module.h) as what a dynamic program is compiled
// from: one stage, an instance of the module for the shapes of its inputs.
#pragma once

#include <collage/symbolic.h>

#include <memory>

#include "frontend/onnx/staged/stages.h"

namespace collage {

// A module without symbols is one for one combination of shapes.
std::shared_ptr<frontend::StageSource> symbolic_source(const SymbolicModel& model);

}  // namespace collage
