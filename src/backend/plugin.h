// The content of an out-of-tree backend's shared library, for `--plugin LIB`:
//
//   #include "backend/plugin.h"
//   COLLAGE_PLUGIN(std::make_unique<MyBackend>())
//
// It must be built against the version of the headers and the library that loads it.
#pragma once

#include <collage/plugin.h>

#include "backend/backend.h"

#define COLLAGE_PLUGIN(backend)           \
  COLLAGE_REGISTER([] {                   \
    ::collage::register_backend(backend); \
    return ::collage::Status();           \
  })
