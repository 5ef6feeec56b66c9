// Graphs inside attributes of nodes: the branches of If, the bodies of Loop and Scan.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/functions.h"

namespace collage::frontend {

// A copy of such a graph that can stand among the nodes around it: names defined inside get a
// prefix of their own, names from outside stay.
struct InlinedGraph {
  std::vector<FlatNode> nodes;  // those that the outputs need, inputs first
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, ::onnx::TensorProto>> initializers;  // by their new names
};

// Copies the graph in the attribute of that name. `prefix`: the node's (Inlining::inner_prefix),
// with a mark of the copy.
Result<InlinedGraph> inline_graph(const Inlining& inlining, const FlatNode& node,
                                  const std::string& attribute, const std::string& prefix);

// Returns that graph; kBadModel: the node has none.
Result<const ::onnx::GraphProto*> graph_attribute(const ::onnx::NodeProto& node,
                                                  const std::string& name);

// Returns a node that gives a value another name.
FlatNode identity_node(const std::string& from, const std::string& to, const FlatNode& like);

}  // namespace collage::frontend
