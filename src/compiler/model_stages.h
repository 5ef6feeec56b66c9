// Models at any stage: what makes a module one, and what a module must be before partitioning looks
// at it.
#pragma once

#include "compiler/compile.h"

namespace collage {

// The module as a later stage of `like`: from the same file, inputs and outputs named alike where
// they are the same. It is not verified. kBadModel: there is no @main, or it takes what is no
// tensor.
Result<Model> staged_model(const Model& like, Module module);

// The model after the standard passes, which remembers what it was in half precision.
Result<Model> simplified(const Model& model);

// What a user made is verified, once it is used.
Status check_verified(const Model& model);

// The model, verified, with functions, programs and operators that users define in place of calls
// of them: the first passes of the simplification, without which nothing is partitioned. The same
// model where there is nothing to do.
Result<Model> linked(const Model& model);

}  // namespace collage
