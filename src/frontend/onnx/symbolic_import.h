// A model whose inputs have open dimensions as one module over symbols
// (frontend/script/symbolic_module.h): it is imported for several sizes, and what these have in
// common is the module (frontend/script/generalise.h).
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "frontend/onnx/staged/stages.h"
#include "frontend/script/symbolic_module.h"

namespace collage::frontend {

/// Each open dimension that is named is a symbol of that name, made an identifier; each without a
/// name is one of its own, called by its input. `dims`: what a named dimension is, a number or a
/// term over others. kUsage: no input has it, or it is no term. kUnsupported: the model cannot be
/// imported for sizes of its inputs alone, or differs between sizes in more than integers.
Result<tensor_program::SymbolicModule> import_symbolic(
    StagedModel& model, const std::map<std::string, std::string>& dims);

}  // namespace collage::frontend
