// What an out-of-tree backend's shared library must hold, for `--plugin LIB`:
//
//   #include "backend/plugin.h"
//   COLLAGE_PLUGIN(std::make_unique<MyBackend>())
//
// It is built against the headers and the library of the very version that loads it.
#pragma once

#include <collage/plugin.h>

#include "backend/backend.h"

#define COLLAGE_PLUGIN(backend)           \
  COLLAGE_REGISTER([] {                   \
    ::collage::register_backend(backend); \
    return ::collage::Status();           \
  })
