// Element types as Halide's, and conversions between them.
#pragma once

#include <Halide.h>

#include "ir/type.h"

namespace collage::native {

Halide::Type halide_type(DType dtype);

/// The value as that type. Halide does conversions of float16 by F16C's instructions, and has none
/// of bfloat16 that keep every NaN.
Halide::Expr converted(const Halide::Expr& value, DType dtype);

/// An int32 as that type of 8 or 16 bits, or as its end that is nearer. In steps for which there
/// are instructions: of min and max LLVM moves additions out, and then sees none.
Halide::Expr saturated(const Halide::Expr& value, DType dtype);

}  // namespace collage::native
