// Splits inference-time batch norms: y = x * scale + shift with one scale and shift a channel.
// After a convolution or product with constant weights both go into weight and bias, else they
// become multiply and add.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> fold_batch_norm(const Function& function);

}  // namespace collage
