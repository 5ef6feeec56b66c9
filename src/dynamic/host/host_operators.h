// Operators of ONNX whose results' shapes depend on values, so that no call of `ops` has a type
// before it runs. The host evaluates them at run time between compiled programs.
#pragma once

#include <collage/tensor.h>
#include <onnx/onnx-ml.pb.h>

#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage::dynamic {

// `domain` as the node names it.
bool is_host_operator(std::string_view domain, std::string_view op);

// The node must be of such an operator. `opset`: the version of its domain that the model is
// written in. `inputs` are the node's, an undefined Tensor for an absent optional one. kBadModel:
// an input does not fit the operator. Returns a tensor for each of the node's outputs, those
// without a name too. Computes with the thread team of the caller.
Result<std::vector<Tensor>> run_host_operator(const ::onnx::NodeProto& node, int64_t opset,
                                              const std::vector<Tensor>& inputs);

}  // namespace collage::dynamic
