// A function as a kernel: runs its calls one by one with their reference kernels.
#pragma once

#include <memory>

#include "ir/expr.h"
#include "runtime/kernel.h"

namespace collage {

// Checks whether every call can be interpreted: operators with reference kernels and function
// literals; parameters that are tensors.
Status check_interpretable(const Function& function);

// Parameters are the inputs, leaves of the result the outputs, all plain. A function of a single
// call writes straight into the output buffers.
Result<std::unique_ptr<Kernel>> make_interpreted_kernel(const Function& function);

void register_function_loader();

}  // namespace collage
