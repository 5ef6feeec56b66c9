// Libraries that lie beside the one that holds this code, or in collage/ below, and are loaded when
// they are first asked for: a process holds nothing that it does not use.
#pragma once

#include <string>

#include "base/result.h"

namespace collage {

// What dlsym takes, and with it all that the library needs; it is never closed. kUnavailable where
// there is none, or it cannot be loaded.
Result<void*> load_library_beside(const std::string& file);

}  // namespace collage
