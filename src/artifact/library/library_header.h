// The C header of a library, and how C says what a plan takes and gives.
#pragma once

#include <string>
#include <string_view>

#include "artifact/library/library_source.h"

namespace collage {

// The library's functions, by what stands behind "NAME_".
inline constexpr const char* kLibraryFunctions[] = {"create", "run",   "free",
                                                    "error",  "input", "output"};

std::string library_header(const Plan& plan, const LibraryFacts& facts);

// A string literal of that text.
std::string c_string(std::string_view text);
// A comment may hold it.
std::string c_remark(std::string_view text);

}  // namespace collage
