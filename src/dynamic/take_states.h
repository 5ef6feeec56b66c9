// The states of a model, as its user names them: inputs and outputs that become the program's own.
#pragma once

#include <collage/dynamic.h>

#include <vector>

#include "artifact/bucketing/states.h"
#include "base/result.h"
#include "frontend/onnx/staged/stages.h"

namespace collage {

// Takes the states out of `inputs` and `outputs`, which then are the caller's, and makes `graph`
// give the increment of a run in place of the whole, after its other outputs. kUsage: an input or
// output does not exist, or its dimensions do not show what grows.
Result<std::vector<StateInfo>> take_states(const DynamicOptions& options,
                                           std::vector<TensorInfo>& inputs,
                                           std::vector<TensorInfo>& outputs,
                                           frontend::RemainingGraph& graph);

}  // namespace collage
