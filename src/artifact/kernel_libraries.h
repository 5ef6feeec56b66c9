// Finds loaders of kernels: in this process, in the library that holds this code (libcollage, whose
// backends have them), or in one beside it: libcollage_kernels_onednn.so has those named "onednn"
// or "onednn.…". Such a library is loaded when a loader is first needed, so a process holds no
// vendor's library that its programs do not use.
#pragma once

#include <string>

#include "runtime/saved_kernel.h"

namespace collage {

// `add` registers loaders; it is called before libraries are searched, perhaps several times.
void set_own_loaders(void (*add)());

// kUnavailable: no library has such kernels.
Result<const KernelLoader*> find_kernel_library(const std::string& loader);

}  // namespace collage
