// Folds constants that scale or shift the channels of a convolution or product into its weight and
// bias; also a scalar that multiplies a product's input. Exact up to rounding.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> fold_scale(const Function& function);

}  // namespace collage
