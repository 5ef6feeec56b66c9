// Products of 16-bit integers by the vector unit (AVX-512 VNNI), for processors without a matrix
// unit: an instruction adds the products of 16 pairs, twice as many as float32's multiply-add, and
// as many as one of bfloat16, which has 8 digits where these (contraction/integers.h) have 13 and
// more.
#pragma once

#include "kernels/contraction/micro_kernel.h"

namespace collage::vnni {

/// What numbers can become.
inline constexpr contraction::Parts kAllIntegers[] = {{1, 1, true}, {1, 1, true, true}};

/// That for contractions: the rows of a[i] lie 64 bytes apart.
const contraction::MicroKernel& dot_micro_kernel();

}  // namespace collage::vnni
