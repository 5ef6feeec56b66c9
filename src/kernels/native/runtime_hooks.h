// What compiled kernels ask of the process that loads them, by name: Halide's parallel loop,
// scratch memory, error reports, calls of external functions. linker.h says how a kernel finds
// them.
#pragma once

#include <string>
#include <vector>

namespace collage::native {

struct Hook {
  std::string name;
  void* function;
};

/// The symbol of the table through which a kernel's library calls the hooks.
inline constexpr char kHookTable[] = "collage_hooks";

/// All of them, always in the same order.
const std::vector<Hook>& runtime_hooks();

/// Those of Halide's assertions (runtime_errors.cc).
std::vector<Hook> assertion_hooks();

/// Reports an error of a kernel on this thread.
void set_kernel_error(std::string message);

/// The last error a kernel reported on this thread, and forgets it.
std::string take_kernel_error();

}  // namespace collage::native
