// The native backend: our own fused kernels, compiled by Halide for this processor.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_native_backend();

}  // namespace collage
