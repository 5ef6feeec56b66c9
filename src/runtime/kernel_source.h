// KernelSource: a kernel as a part of a library that needs nothing of Collage (docs/artifact.md):
// C that runs it, compiled code that the C calls, and constants.
#pragma once

#include <string>
#include <vector>

#include "runtime/saved_kernel.h"

namespace collage {

struct KernelSource {
  // Statements of a C function that returns 0 or an error's code. They see char pointers `in[i]`,
  // `out[i]` and `constant[i]`, each aligned to 64 bytes, the function `code(void**)` if there is
  // an object, and the definitions of library_runtime.c.
  std::string body;
  std::string object;  // an object file; empty: none
  std::string entry;   // the symbol of `code` in it; all else that it defines is its own
  std::vector<SharedBytes> constants;
};

}  // namespace collage
