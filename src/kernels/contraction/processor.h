// What this processor has, and what the system lets this process use.
#pragma once

#include "base/result.h"

namespace collage::contraction {

/// A matrix unit (Intel AMX), which the system has to allow.
Status matrix_unit();
/// Products of 16-bit integers by the vector unit (AVX-512 VNNI).
Status dot_products();

}  // namespace collage::contraction
