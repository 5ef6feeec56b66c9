// Makes a shared library a plugin, for `collage … --plugin LIB` and load_plugin:
//
//   COLLAGE_REGISTER([]() -> collage::Status { … })
//
// One source file has it. Its function is called once, when the library is loaded, to register
// operators (operators.h) and functions (functions.h); a library of one kind alone has a shorter
// form there. A plugin must be built against the version of the headers and the library that loads
// it.
#pragma once

#include <collage/result.h>
#include <collage/version.h>

#include <filesystem>
#include <stdexcept>

namespace collage {

// Loads a plugin and registers its contents, here and in the worker processes of later
// compilations. Repeated loads have no effect. kUsage: there is no such file; kUnavailable: it does
// not load, is no plugin, or was built for another version.
Status load_plugin(const std::filesystem::path& library);

}  // namespace collage

#define COLLAGE_REGISTER(...)                                                              \
  extern "C" __attribute__((visibility("default"))) const char* collage_plugin_version() { \
    return COLLAGE_VERSION;                                                                \
  }                                                                                        \
  extern "C" __attribute__((visibility("default"))) void collage_plugin_register() {       \
    if (const ::collage::Status status = (__VA_ARGS__)(); !status.ok())                    \
      throw std::runtime_error(status.to_string());                                        \
  }
