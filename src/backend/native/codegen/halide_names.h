// For the source files of kernel templates only: Halide's names as one writes a pipeline with them.
#pragma once

#include <Halide.h>

#include "backend/native/codegen/halide_math.h"
#include "base/integers.h"

namespace collage::native {

using Halide::Func;
using Halide::ImageParam;
using Halide::RDom;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

}  // namespace collage::native
