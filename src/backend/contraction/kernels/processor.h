// What this processor has, and what the system lets this process use.
#pragma once

#include "base/result.h"

namespace collage::contraction {

/// A matrix unit (Intel AMX), which the system has to allow.
Status matrix_unit();

}  // namespace collage::contraction
