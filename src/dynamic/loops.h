// Runs Loop and Scan; the caller runs their bodies.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <functional>
#include <vector>

#include "base/result.h"
#include "runtime/tensor_type.h"

namespace collage {

// Runs the body once: from its inputs to its outputs.
using RunBody = std::function<Result<std::vector<Tensor>>(std::vector<Tensor> inputs)>;

// `inputs` are the node's (undefined for one that is absent); the results its outputs.
Result<std::vector<Tensor>> run_loop(const ::onnx::GraphProto& body,
                                     const std::vector<Tensor>& inputs, const RunBody& run);
Result<std::vector<Tensor>> run_scan(const ::onnx::NodeProto& node, const ::onnx::GraphProto& body,
                                     const std::vector<Tensor>& inputs, const RunBody& run);

}  // namespace collage
