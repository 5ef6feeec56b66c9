// What an out-of-tree backend's shared library must hold, for `--plugin LIB`:
//
//   #include "backend/plugin.h"
//   COLLAGE_PLUGIN(std::make_unique<MyBackend>())
//
// It is built against the headers and the library of the very version that loads it.
#pragma once

#include "backend/backend.h"
#include "collage/version.h"

#define COLLAGE_PLUGIN(backend)                                                            \
  extern "C" __attribute__((visibility("default"))) const char* collage_plugin_version() { \
    return COLLAGE_VERSION;                                                                \
  }                                                                                        \
  extern "C" __attribute__((visibility("default"))) void collage_plugin_register() {       \
    ::collage::register_backend(backend);                                                  \
  }
