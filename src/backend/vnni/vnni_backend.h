// The vnni backend: convolutions and products, with the elementwise steps that follow, by 16-bit
// integer dot products on processors without a matrix unit. All it has are lowered variants.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_vnni_backend();

}  // namespace collage
