// Control flow that is known while importing: If on a constant takes its branch, and Loop and Scan
// whose number of iterations is known and small are unrolled. The graphs inside become nodes of the
// graph around them.
#pragma once

#include "base/result.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/graph_importer.h"

namespace collage::frontend {

// Returns whether it is If, Loop or Scan of the standard operators.
bool is_control_flow(const ::onnx::NodeProto& node);

// Imports it, or adds it to the importer's late nodes.
Status import_control_flow(GraphImporter& importer, const FlatNode& node);

// Returns the one value of a condition or trip count.
Result<int64_t> scalar_value(const Tensor& tensor, std::string_view what);

}  // namespace collage::frontend
