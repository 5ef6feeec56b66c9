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

/// A real number from -2^22 to 2^22, rounded, and plus that, in the low bits of that type of 8 or
/// 16 bits. With AVX-512, whose vectors Halide rounds by halves and saturates in steps, in less
/// than half as many instructions.
Halide::Expr rounded_bits(const Halide::Expr& value, int64_t added, DType dtype);

}  // namespace collage::native
