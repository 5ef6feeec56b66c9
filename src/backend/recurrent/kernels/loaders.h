// Registers the loaders of these kernels (runtime/saved_kernel.h).
#pragma once

namespace collage::recurrent {

void register_loaders();

}  // namespace collage::recurrent
