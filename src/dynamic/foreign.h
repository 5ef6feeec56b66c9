// Calls operators that the user gave.
#pragma once

#include <collage/dynamic.h>
#include <onnx/onnx-ml.pb.h>

#include <vector>

#include "base/result.h"

namespace collage {

// Returns as many results as the node has outputs.
Result<std::vector<Tensor>> call_foreign(const ForeignOperator& function,
                                         const ::onnx::NodeProto& node, const std::string& label,
                                         const std::vector<Tensor>& inputs);

}  // namespace collage
