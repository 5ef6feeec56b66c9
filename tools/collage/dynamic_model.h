// Models whose shapes are not known before they run (collage/dynamic.h): what sub-commands do with
// them.
#pragma once

#include <vector>

#include "bucketing/states.h"
#include "options.h"

namespace collage::tool {

// Whether a model that could not be loaded can be run in stages.
bool is_dynamic(const SharedOptions& options, const Status& failure);

// Inputs by name that --inputs gives; kUsage for one that `infos` do not have.
Result<TensorsByName> given_inputs(const std::vector<DynamicTensorInfo>& infos,
                                   const SharedOptions& options);
// The outputs' names with the shapes that they came in.
std::vector<TensorInfo> infos_of(const std::vector<DynamicTensorInfo>& declared,
                                 const std::vector<Tensor>& outputs);

Status run_dynamic(const SharedOptions& options);
// Against the reference interpreter.
Status verify_dynamic(const SharedOptions& options);

}  // namespace collage::tool
