// Imports control flow as the operators control.if and control.loop (ops/control.h), whose
// functions are the graphs inside the node. That is possible where these can be imported without
// values of a run, and the tensors that they give have the types that they begin with, whichever
// branch or iteration gives them. What they read of the graph around them becomes their operands;
// constants stand in them.
#pragma once

#include <optional>

#include "base/result.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/staged/subgraphs.h"

namespace collage::frontend {

// Each returns whether it imported the node. `or_unrolled`: one whose operands are all constants is
// left, since its iterations may be computed while they are imported.
Result<bool> form_if(GraphImporter& importer, const FlatNode& node);
// `trips`: the number of iterations, where it is known that there will be so many.
Result<bool> form_loop(GraphImporter& importer, const FlatNode& node, std::optional<int64_t> trips,
                       bool or_unrolled);
Result<bool> form_scan(GraphImporter& importer, const FlatNode& node, bool or_unrolled);

// Gives names inside a graph their initializers.
Status define_initializers(GraphImporter& importer, InlinedGraph& graph);
// Returns an input of the node, null where it is absent.
Result<Expr> input_value(GraphImporter& importer, const FlatNode& node, int i);
NodeContext context_of(GraphImporter& importer, const FlatNode& node);

}  // namespace collage::frontend
