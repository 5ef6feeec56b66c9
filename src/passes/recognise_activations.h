// Recognises activation functions written out in elementary operators: GELU (erf and tanh), SiLU,
// hard sigmoid, hard swish, mish, softplus.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> recognise_activations(const Function& function);

}  // namespace collage
