// The C header of a library, and a plan's inputs and outputs in C.
#pragma once

#include <string>
#include <string_view>

#include "artifact/library/library_source.h"

namespace collage {

// The library's functions, without the prefix "NAME_".
inline constexpr const char* kLibraryFunctions[] = {"create", "run",   "free",
                                                    "error",  "input", "output"};

std::string library_header(const Plan& plan, const LibraryFacts& facts, bool needs_runtime);

// Returns a string literal of that text.
std::string c_string(std::string_view text);
// Returns the text so that a comment may hold it.
std::string c_remark(std::string_view text);

}  // namespace collage
