// What host code of kernels calls: native's hooks, and those of Halide's OpenCL runtime, which the
// launcher of the running kernel (launcher.h) answers.
#pragma once

#include <vector>

#include "backend/native/kernels/runtime_hooks.h"

namespace collage::opencl {

/// All of them, always in the same order.
const std::vector<native::Hook>& runtime_hooks();

}  // namespace collage::opencl
