// Flattens a model to one list of nodes: calls of the model's own functions are replaced by their
// bodies, with the attributes they refer to filled in. Values inside a call get names of their own
// (inlining.h).
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/inlining.h"

namespace collage::frontend {

struct FlatNode {
  std::shared_ptr<::onnx::NodeProto> proto;  // the model's own (not owned), or a copy
  int64_t opset;                             // of the standard operators where the node stands
  std::string label;                         // its name, or operator and position where it has none
};

struct FlatGraph {
  std::vector<FlatNode> nodes;  // in the order of the file
};

// "node 'conv1' (Conv)".
std::string describe(const FlatNode& node);
// "Conv", or "com.microsoft::FusedConv".
std::string qualified_op(const ::onnx::NodeProto& node);

// Returns the nodes of `graph`, the model's own or one inside an attribute. Labels start with
// `scope`.
Result<FlatGraph> flatten(const Inlining& inlining, ::onnx::GraphProto& graph, int64_t opset,
                          const std::string& scope = "");

}  // namespace collage::frontend
