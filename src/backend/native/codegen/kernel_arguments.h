// From what was built to what its code is called with: bindings in order, then the results.
#pragma once

#include <vector>

#include "backend/native/codegen/built_kernel.h"
#include "backend/native/kernels/native_kernel.h"

namespace collage::native {

/// Fails where memory cannot be had for a constant that is not aligned.
Result<std::vector<KernelArgument>> kernel_arguments(const BuiltKernel& built);

}  // namespace collage::native
