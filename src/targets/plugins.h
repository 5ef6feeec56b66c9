// Backends from shared libraries (`--plugin LIB`); backend/plugin.h says what such a library holds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

// Loads the library and registers its backend, once however often it is asked. kUsage: no such
// file; kUnavailable: it does not load, is no plugin, or was built for another version.
Status load_plugin(const std::filesystem::path& library);
// Those loaded so far, absolute: the processes that measure must load them too.
std::vector<std::string> loaded_plugins();

}  // namespace collage
