// The names compiled kernels resolve in this process (see runtime_hooks.cc).
#pragma once

#include <string>

namespace collage::native {

/// Reports an error of a kernel on this thread.
void set_kernel_error(std::string message);

/// The last error a kernel reported on this thread, and forgets it.
std::string take_kernel_error();

}  // namespace collage::native
