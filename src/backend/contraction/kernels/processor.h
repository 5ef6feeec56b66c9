// Features of this processor that the system lets this process use.
#pragma once

#include "base/result.h"

namespace collage::contraction {

/// Checks for a matrix unit (Intel AMX), which the system has to permit.
Status matrix_unit();

}  // namespace collage::contraction
