// Loads libraries that lie beside the one that holds this code, or in collage/ below, when they are
// first needed: a process holds nothing that it does not use.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/result.h"

namespace collage {

// Returns the folder of the library, or of the program, that holds this code; empty: unknown.
std::filesystem::path library_folder();

// Returns a handle for dlsym and loads all that the library needs; it is never closed.
// kUnavailable: there is none, it cannot be loaded, or this process may not have `room` bytes of
// addresses more (initialisers of some libraries hang without memory).
Result<void*> load_library_beside(const std::string& file, size_t room = 0);
inline constexpr size_t kLinearAlgebraRoom = size_t{512} << 20;  // of OpenBLAS

// Returns a function of the library, or of its dependencies; kUnavailable: there is none.
template <typename Function>
Status find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function != nullptr) return {};
  return error(ErrorCode::kUnavailable, "what is installed lacks {}", name);
}

}  // namespace collage
