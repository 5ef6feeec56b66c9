// Registers the loaders of these kernels (runtime/saved_kernel.h).
#pragma once

namespace collage::openvino {

void register_loaders();

}  // namespace collage::openvino
