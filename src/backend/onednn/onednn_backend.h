// The oneDNN backend: pattern-based; convolutions (direct and Winograd), products, poolings,
// normalisations and elementwise chains with post operations, in the layouts oneDNN computes in.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_onednn_backend();

}  // namespace collage
