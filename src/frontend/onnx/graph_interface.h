// A graph's initializers, inputs and outputs.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/narrow_values.h"
#include "frontend/onnx/tensor_data.h"
#include "ir/expr.h"

namespace collage::frontend {

// Initializers by name, checked but not read.
using Initializers = std::unordered_map<std::string, ::onnx::TensorProto*>;

// `max_bytes`: limit of all together; 0: 80% of this machine's memory.
Result<Initializers> check_initializers(::onnx::GraphProto& graph, TensorData& data,
                                        uint64_t max_bytes);

// Returns the inputs without an initializer.
Result<std::vector<const ::onnx::ValueInfoProto*>> inputs_of(const ::onnx::GraphProto& graph,
                                                             const Initializers& initializers);

// Checks that the value has the declared element type, if there is one.
Status check_output(const ::onnx::ValueInfoProto& output, const Expr& value,
                    const NarrowValues& narrow);

}  // namespace collage::frontend
