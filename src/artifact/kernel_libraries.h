// Where loaders of kernels come from: this process has them, or the library that holds this code
// registers them (libcollage, whose backends have them), or one beside it brings them:
// libcollage_kernels_onednn.so those named "onednn" or "onednn.…". It is loaded when they are first
// asked for, so a process holds no vendor's library that its programs do not use.
#pragma once

#include <string>

#include "runtime/saved_kernel.h"

namespace collage {

// `add` registers loaders; it is called before libraries are looked for, perhaps several times.
void set_own_loaders(void (*add)());

// kUnavailable: nobody has such kernels.
Result<const KernelLoader*> find_kernel_library(const std::string& loader);

}  // namespace collage
