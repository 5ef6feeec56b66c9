// Converts TensorProto to Tensor. Sizes are checked first without reading data, so that a model
// with one bad weight is refused before anything is allocated; each tensor is taken when it is
// needed, and inline data leaves the message as it is converted.
#pragma once

#include <collage/tensor.h>
#include <onnx/onnx-ml.pb.h>

#include <filesystem>

#include "base/result.h"
#include "frontend/onnx/external_data.h"

namespace collage::frontend {

// kUnsupported for element types that have no DType (strings, complex, narrow ones).
Result<DType> dtype_from_onnx(int32_t data_type);
// Does the same, with the carrier of narrow types (narrow_types.h).
Result<DType> carrier_from_onnx(int32_t data_type);
std::string onnx_type_name(int32_t data_type);  // "FLOAT", "STRING", "type 99"

class TensorData {
 public:
  // For the model in that file; `roots` as in ImportOptions.
  explicit TensorData(std::filesystem::path model, std::vector<std::filesystem::path> roots = {})
      : external_(std::move(model), std::move(roots)) {}

  // Checks shape and element type, and that the data exists in full length. Returns its bytes.
  Result<uint64_t> check(const ::onnx::TensorProto& tensor);
  // Returns the tensor and removes inline data from the message.
  Result<Tensor> take(::onnx::TensorProto& tensor);
  // Copies the tensor's external data into the message.
  Status move_inline(::onnx::TensorProto& tensor);

 private:
  ExternalData external_;
};

}  // namespace collage::frontend
