// What compiled kernels ask of the process that loads them, by name: Halide's parallel loop,
// scratch memory, error reports, calls of external functions. linker.h says how a kernel finds
// them.
#pragma once

#include <cstdint>
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

/// Calls compiled code. It does not look whether it was given the scratch memory that it asked for,
/// so where that cannot be had its thread leaves it at once: the call ends with an error, and
/// `scratch_failures`, of the process, grows.
int call_compiled(int (*code)(void**), void** arguments);
uint64_t scratch_failures();

/// Reports an error of a kernel on this thread.
void set_kernel_error(std::string message);

/// The last error a kernel reported on this thread, and forgets it.
std::string take_kernel_error();

}  // namespace collage::native
