// The model as one flat list of nodes: calls of the model's own functions are replaced by their
// bodies, attributes they refer to filled in. Values inside a call get names of their own, so that
// two calls do not meet.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::frontend {

struct FlatNode {
  ::onnx::NodeProto* proto;  // in the model, or in `FlatGraph::owned`
  int64_t opset;             // of the standard operators where the node stands
  std::string label;         // its name, or operator and position where it has none
};

struct FlatGraph {
  std::vector<FlatNode> nodes;  // in the order of the file
  std::vector<std::unique_ptr<::onnx::NodeProto>> owned;
};

// "node 'conv1' (Conv)".
std::string describe(const FlatNode& node);
// "Conv", or "com.microsoft::FusedConv".
std::string qualified_op(const ::onnx::NodeProto& node);

Result<FlatGraph> flatten(::onnx::ModelProto& model, int64_t opset);

}  // namespace collage::frontend
