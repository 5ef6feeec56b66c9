// Reading the protobuf of a model. The weights that it carries inline stay in the message until
// tensor_data.h takes them out one by one.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace collage::frontend {

// The message, whose structure (graph, opset, counts, names, attribute lengths, nesting) is
// checked.
Result<std::unique_ptr<::onnx::ModelProto>> read_model_file(const std::filesystem::path& file);
// The same of what such a file holds.
Result<std::unique_ptr<::onnx::ModelProto>> parse_model(std::string_view content);

// The version of the standard operators that a list of imports asks for.
Result<int64_t> standard_opset(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);

// True for "" and "ai.onnx", the two names of the domain of standard operators.
inline bool is_standard_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

}  // namespace collage::frontend
