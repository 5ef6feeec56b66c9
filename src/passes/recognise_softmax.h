// Recognises softmax written as exp(x - max(x)) / sum(exp(x - max(x))), with or without the
// maximum, and log softmax.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> recognise_softmax(const Function& function);

}  // namespace collage
