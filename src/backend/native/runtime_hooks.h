// The names compiled kernels resolve in this process (see runtime_hooks.cc).
#pragma once

#include <string>

namespace collage::native {

/// The last error a kernel reported on this thread, and forgets it.
std::string take_kernel_error();

}  // namespace collage::native
