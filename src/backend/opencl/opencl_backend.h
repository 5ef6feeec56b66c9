// The opencl backend: fused kernels for OpenCL devices, compiled by Halide.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_opencl_backend();

}  // namespace collage
