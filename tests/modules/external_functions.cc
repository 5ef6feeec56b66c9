#include "modules/external_functions.h"

#include "tensor_program/external.h"

namespace collage::testing {

void register_external_functions() {
  tensor_program::register_external(
      "custom_inplace_update",
      [](std::span<const TensorType> types) -> Result<TensorType> {
        if (types.size() != 1 || types[0].dtype != DType::kFloat32)
          return bad_model("custom_inplace_update takes one float32 tensor");
        return types[0];
      },
      [](std::span<const DLTensor> inputs, const DLTensor&) -> Status {
        int64_t elements = 1;
        for (int d = 0; d < inputs[0].ndim; ++d) elements *= inputs[0].shape[d];
        auto* updated = static_cast<float*>(inputs[0].data);
        for (int64_t i = 0; i < elements; ++i) updated[i] += static_cast<float>(i);
        return {};
      },
      0);
}

}  // namespace collage::testing
