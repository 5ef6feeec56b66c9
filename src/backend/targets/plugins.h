// Backends, operators and functions from shared libraries (`--plugin LIB`); collage/plugin.h and
// backend/plugin.h say what such a library holds.
#pragma once

#include <collage/plugin.h>

#include <string>
#include <vector>

namespace collage {

// Whether the calling thread is just now in what a plugin registers: the processes that measure
// will know it too.
bool is_loading_plugin();
// Those loaded so far, absolute: the processes that measure must load them too.
std::vector<std::string> loaded_plugins();

}  // namespace collage
