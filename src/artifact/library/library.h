// Compiles a program ahead of time to a static or shared library with a C header, which needs
// nothing of Collage (docs/artifact.md#a-library). binutils and a C compiler make it.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/plan.h"

namespace collage {

// Returns whether a file of that name is a library: it ends in .a (static) or .so (shared).
bool is_library_name(const std::filesystem::path& path);
// Returns the prefix of its functions' names and its header: "resnet50" of libresnet50.a.
std::string library_name(const std::filesystem::path& path);

// kUnavailable names a missing tool.
Status check_library_tools();

// Writes the library, and NAME.h beside it. kUsage: a kernel is not native's.
Status write_library(const std::filesystem::path& path, const Plan& plan, int threads,
                     const std::string& model);

}  // namespace collage
