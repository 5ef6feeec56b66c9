// The standard list of passes. Their order is explained in passes.cc.
#pragma once

#include "passes/pipeline.h"

namespace collage {

// What every imported model goes through before candidates are looked for: half precision computed
// in float32, constants and batch norms folded, needless operators removed, composite idioms (layer
// norm, GELU, softmax, attention …) recognised.
Pipeline simplification_pipeline();

}  // namespace collage
