// The model as one flat list of nodes: calls of the model's own functions are replaced by their
// bodies, attributes they refer to filled in. Values inside a call get names of their own, so that
// two calls do not meet.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

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

// The nodes of `graph`, the model's own or one inside an attribute. Labels start with `scope`.
Result<FlatGraph> flatten(const ::onnx::ModelProto& model, ::onnx::GraphProto& graph, int64_t opset,
                          const std::string& scope = "");

// Renames the values that a node reads and gives, those that graphs inside its attributes take from
// outside included.
using Rename = std::function<void(std::string* name)>;
void rename_values(::onnx::NodeProto& node, const Rename& rename);

}  // namespace collage::frontend
