// The sources of a program's library: C, object files of its kernels, and constants. Its C is
// src/artifact/library/library_runtime.c followed by the program: a function for each step, and one
// that calls them in order on the caller's tensors, the arena and the constants. Where a kernel is
// no code of its own, the C hands the program's artifact to libcollage_runtime instead.
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
  // The first step whose kernel is no code of its own, and why; empty: the library needs nothing.
  // Otherwise there are no objects, and the program's artifact takes the place of the constants.
  std::string needs_runtime;
};

// kUnsupported: constants are too large.
Result<LibrarySource> library_source(const Plan& plan, const LibraryFacts& facts);

// Code, tables and constants refer to one another by offsets of 32 bits.
inline constexpr size_t kMostConstantBytes = size_t{2'000'000'000};
// The file that libraries with `needs_runtime` are linked with.
std::string runtime_library();
// The symbol of the constants; the end of them has `_end` behind it.
inline constexpr char kLibraryConstants[] = "collage_constants";

}  // namespace collage
