// The instruction of src/kernels/vnni/instructions.h as a function that runs on any processor.
#pragma once

#include "kernels/contraction/instructions.h"

#define COLLAGE_VNNI
#define COLLAGE_VNNI_INSIDE inline

namespace collage::vnni {

inline void add_products(__m512i& sum, __m512i a, __m512i b) {
  sum = software::add_products(sum, a, b);
}

}  // namespace collage::vnni
