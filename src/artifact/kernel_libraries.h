// Where loaders of kernels come from: this process has them, or a library beside this one brings
// them: libcollage_kernels_onednn.so those named "onednn" or "onednn.…". It is loaded when they are
// first asked for, so a process holds no vendor's library that its programs do not use.
#pragma once

#include <string>

#include "runtime/saved_kernel.h"

namespace collage {

// kUnavailable: nobody has such kernels.
Result<const KernelLoader*> find_kernel_library(const std::string& loader);

}  // namespace collage
