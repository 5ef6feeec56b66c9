// Ahead of time: a program as a static or shared library with a C header, which needs nothing of
// Collage (docs/artifact.md#a-library). binutils and a C compiler make it.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/plan.h"

namespace collage {

// Whether a file of that name would be a library: it ends in .a (static) or .so (shared).
bool is_library_name(const std::filesystem::path& path);
// What the names of its functions begin with, and its header's: "resnet50" of libresnet50.a.
std::string library_name(const std::filesystem::path& path);

// kUnavailable, naming it, where a tool is missing.
Status check_library_tools();

// Writes the library, and NAME.h beside it. kUsage where a kernel is not native's.
Status write_library(const std::filesystem::path& path, const Plan& plan, int threads,
                     const std::string& model);

}  // namespace collage
