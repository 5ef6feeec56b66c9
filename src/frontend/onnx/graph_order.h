// The order in which the nodes of a flat graph can be imported, and the checks that it exists:
// every value is defined once, every value used is defined, no cycles.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/functions.h"

namespace collage::frontend {

// Returns the names that a node reads: its inputs, and those that graphs inside its attributes take
// from outside.
std::vector<const std::string*> used_names(const ::onnx::NodeProto& node);

// Returns indices into graph.nodes: those that `outputs` need, inputs first, otherwise in the
// file's order. `given` are the values that exist without a node: inputs and initializers.
Result<std::vector<size_t>> import_order(const FlatGraph& graph,
                                         const std::unordered_set<std::string>& given,
                                         const std::vector<std::string>& outputs);

}  // namespace collage::frontend
