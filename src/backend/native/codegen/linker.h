// From a kernel's object file to a library that can be loaded, by binutils; and what the library
// asks of the process that loads it. Everything on the way is a file in memory: a disk that is full
// is none of a kernel's concern.
//
// A library finds the runtime's hooks (runtime_hooks.h) in a table of its own, which is filled once
// it is loaded, and not among the symbols of the process: an application may have loaded Collage
// without making its symbols global, as Python does.
#pragma once

#include <string>
#include <vector>

#include "backend/native/kernels/runtime_hooks.h"
#include "base/memory_file.h"
#include "base/result.h"

namespace collage::native {

/// Whether the assembler and the linker are on PATH; else what to install.
Status linking_available();

Status assemble(const MemoryFile& assembly, const MemoryFile& object);

/// The library that is linked from an object file.
Result<std::string> link_kernel(const MemoryFile& object, const std::vector<Hook>& hooks);

/// An empty file for what is made of a kernel on its way to a library.
Result<MemoryFile> kernel_file();

}  // namespace collage::native
