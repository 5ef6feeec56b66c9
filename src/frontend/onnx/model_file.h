// Reads the protobuf of a model. Its large weights stay in the file (large_weights.h), others in
// the message, until tensor_data.h takes them one by one.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace collage::frontend {

// Reads the message and checks its structure (graph, opset, counts, names, attribute lengths,
// nesting).
Result<std::unique_ptr<::onnx::ModelProto>> read_model_file(const std::filesystem::path& file);
// Does the same with the content of such a file.
Result<std::unique_ptr<::onnx::ModelProto>> parse_model(std::string_view content);

// Returns the version of the standard operators in a list of imports.
Result<int64_t> standard_opset(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);

// Returns true for "" and "ai.onnx", the two names of the domain of standard operators.
inline bool is_standard_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

}  // namespace collage::frontend
