// Registers the loaders of these kernels (runtime/saved_kernel.h) and the memory of devices,
// without looking for any: that takes the time of a hundred kernels.
#pragma once

namespace collage::opencl {

void register_loaders();

}  // namespace collage::opencl
