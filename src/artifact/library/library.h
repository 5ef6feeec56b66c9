// Compiles a program ahead of time to a static or shared library with a C header
// (docs/artifact.md#a-library). binutils and a C compiler make it.
#pragma once

#include <filesystem>
#include <string>

#include "artifact/write_artifact.h"

namespace collage {

// Returns whether a file of that name is a library: it ends in .a (static) or .so (shared).
bool is_library_name(const std::filesystem::path& path);
// Returns the prefix of its functions' names and its header: "resnet50" of libresnet50.a.
std::string library_name(const std::filesystem::path& path);

// kUnavailable names a missing tool.
Status check_library_tools();

// Writes the library, and NAME.h beside it. Returns what it needs of Collage and why, empty for
// nothing: "libcollage_runtime.so.0, since …".
Result<std::string> write_library(const std::filesystem::path& path, const Plan& plan,
                                  const PlanFacts& facts);

}  // namespace collage
