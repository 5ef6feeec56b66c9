// Loads backends, operators and functions from shared libraries (`--plugin LIB`), which
// collage/plugin.h and backend/plugin.h describe.
#pragma once

#include <collage/plugin.h>

#include <string>
#include <vector>

namespace collage {

// Returns whether the calling thread runs registration code of a plugin: worker processes will have
// what it registers too.
bool is_loading_plugin();
// Absolute paths of the plugins loaded so far, which worker processes must load too.
std::vector<std::string> loaded_plugins();

}  // namespace collage
