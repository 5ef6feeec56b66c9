// The implementation of a model over symbols (collage/symbolic.h).
#pragma once

#include <collage/symbolic.h>

#include <filesystem>
#include <vector>

#include "frontend/script/symbolic_module.h"

namespace collage::internal {

struct SymbolicModelImpl {
  std::filesystem::path path;  // empty: it was made here
  tensor_program::SymbolicModule module;
  std::vector<TensorInfo> inputs, outputs;
};

}  // namespace collage::internal
