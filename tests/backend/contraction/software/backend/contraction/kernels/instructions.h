// The instructions of src/backend/contraction/kernels/instructions.h as functions that run on any
// processor. The kernels' sources are compiled a second time with this header, and those of amx
// beside it, found first.
#pragma once

#include "backend/contraction/software/vector_model.h"

#define COLLAGE_VECTORS
#define COLLAGE_VECTORS_INSIDE inline
#define COLLAGE_BFLOAT16
