// The error for nodes that cannot be imported.
#pragma once

#include <vector>

#include "base/result.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"

namespace collage::frontend {

// Returns kUnsupported with a row for each node (the first few), success if there is none. `all`:
// late nodes of every kind count, not only those that can never be imported. `rows` receives all of
// them; it may be null.
Status refusal_of(const std::vector<LateNode>& nodes, bool all,
                  std::vector<UnsupportedNode>* rows = nullptr);

}  // namespace collage::frontend
