// The amx backend: convolutions, products by constant weights and attention on the processor's
// matrix unit, as sums of products of bfloat16 parts (contraction/kernels/parts.h).
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_amx_backend();

}  // namespace collage
