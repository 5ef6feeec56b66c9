// The standard list of passes. passes.cc explains their order.
#pragma once

#include "passes/pipeline.h"

namespace collage {

// The passes that every imported model goes through before candidates are searched: half precision
// computed in float32, constants and batch norms folded, needless operators removed, composite
// idioms (layer norm, GELU, softmax, attention …) recognised.
Pipeline simplification_pipeline();

}  // namespace collage
