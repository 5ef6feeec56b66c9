// The sources of a program's library: C, object files of its kernels, and constants. Its C is
// src/artifact/library/library_runtime.c followed by the program: a function for each step, and one
// that calls them in order on the caller's tensors, the arena and the constants.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan.h"

namespace collage {

// Facts about the program for the header, beside its plan.
struct LibraryFacts {
  std::string name;   // which its functions' names begin with: a C identifier
  std::string file;   // the library's file name
  std::string model;  // the model's
  int threads = 1;
};

struct LibrarySource {
  struct Object {
    std::string content;  // an object file
    std::string entry;    // what the C calls, and its name in the object
    std::string name_in_object;
  };
  std::string header, code;
  std::vector<Object> objects;
  std::vector<std::pair<size_t, SharedBytes>> constants;  // with their offsets
  size_t constant_bytes = 0;                              // of all, with room to read beyond
  std::vector<std::string> functions;                     // that the header declares
};

// kUsage: a kernel is not native's (nor moves data), naming the step and its backend; kUnsupported:
// constants are too large.
Result<LibrarySource> library_source(const Plan& plan, const LibraryFacts& facts);

// The symbol of the constants.
inline constexpr char kLibraryConstants[] = "collage_constants";

}  // namespace collage
