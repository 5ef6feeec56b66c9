// The inputs of the graph as typed variables. A dimension that the model leaves open takes its
// value from the options; without a value it is an error that names the flag to give, never 1.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/importer.h"
#include "ir/expr.h"

namespace collage::frontend {

struct GraphInputs {
  std::vector<Expr> variables;
  std::map<std::string, int64_t> dims;  // named dimensions with their values
};

// `inputs`: those without an initializer.
Result<GraphInputs> make_inputs(const std::vector<const ::onnx::ValueInfoProto*>& inputs,
                                const ImportOptions& options);

// Checks that a value that fixes an input has its element type and, if declared, its shape.
Status check_fixed_input(const ::onnx::ValueInfoProto& input, const Tensor& value);

// Describes an input for summaries: dims is empty and has_shape false if the rank is open.
Result<ModelInput> describe_input(const ::onnx::ValueInfoProto& input);

}  // namespace collage::frontend
