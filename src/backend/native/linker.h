// From a kernel's object file to a library that can be loaded, by binutils; and what the library
// asks of the process that loads it.
//
// A library finds the runtime's hooks (runtime_hooks.h) in a table of its own, which is filled once
// it is loaded, and not among the symbols of the process: an application may have loaded Collage
// without making its symbols global, as Python does.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "kernels/native/runtime_hooks.h"

namespace collage::native {

/// Whether the assembler and the linker are on PATH; else what to install.
Status linking_available();

Status assemble(const std::filesystem::path& assembly, const std::filesystem::path& object);

/// Writes `library`, and intermediate files beside it, where the object lies too.
Status link_kernel(const std::filesystem::path& object, const std::filesystem::path& library,
                   const std::vector<Hook>& hooks);

}  // namespace collage::native
