// Checks on small sizes, by the reference, whether a model's results depend on the padding of its
// inputs.
#pragma once

#include <collage/dynamic.h>

#include <vector>

#include "base/result.h"
#include "dynamic/stage_program.h"

namespace collage {

// kVerification names an output that changes. `inputs` and `outputs` are the whole model's.
Status check_padding(const StageContext& context, const DynamicOptions& options,
                     const std::vector<TensorInfo>& inputs,
                     const std::vector<TensorInfo>& outputs);

}  // namespace collage
