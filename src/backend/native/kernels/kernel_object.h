// The object file that a kernel's library was linked from. The library keeps it in a section that
// nothing loads, so that whoever has the kernel, from an artifact too, can link it into something
// else.
#pragma once

#include <string>

#include "base/result.h"
#include "runtime/saved_kernel.h"

namespace collage::native {

inline constexpr char kObjectSection[] = ".collage.object";

/// kBadModel where the library is damaged or keeps none.
Result<std::string> kernel_object(const SharedBytes& library);

}  // namespace collage::native
