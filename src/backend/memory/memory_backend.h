// Backend "memory": joins and cuts of tensors by placing buffers: concatenate, split and
// strided_slice along the outermost axis that an encoding has. The parts lie in the whole, so that
// nothing is left to run.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_memory_backend();

}  // namespace collage
