// The library of kernels, beside the plugin, which is what links PyTorch. It is loaded when a
// kernel is first asked for, since PyTorch is large; and so that its libraries find their own
// symbols first: it brings a BLAS whose functions are named like those of the process's.
#pragma once

#include <memory>

#include "backend/variant.h"
#include "ir/expr.h"
#include "runtime/kernel.h"

namespace collage::torch_plugin {

// A kernel of the function, a chain of calls that calls.h accepts, for so many threads. Its arrays
// lie as the variant says, in rows or with their channels last.
using MakeKernel = Result<std::unique_ptr<Kernel>> (*)(const Function& function,
                                                       const Variant& variant, int threads);
// The library's function of this name gives it.
inline constexpr const char* kKernels = "collage_torch_kernels";

// kUnavailable: it does not load.
Result<MakeKernel> kernel_maker();

}  // namespace collage::torch_plugin
