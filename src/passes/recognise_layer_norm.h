// Recognises layer norm and RMS norm written out as means, squares and roots. A constant scale and
// shift behind them become gamma and beta.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> recognise_layer_norm(const Function& function);

}  // namespace collage
