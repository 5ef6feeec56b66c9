#include "ops/half.h"

#include <cstring>
#include <vector>

namespace collage {

float half_to_float(uint16_t bits, DType dtype) {
  if (dtype == DType::kFloat16) {
    _Float16 value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<float>(value);
  }
  return bfloat16_to_float(bits);
}

uint16_t float_to_half(float value, DType dtype) {
  if (dtype == DType::kFloat16) {
    auto narrow = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  return float_to_bfloat16(value);
}

ReferenceKernel with_halves(ReferenceKernel kernel) {
  return [kernel = std::move(kernel)](std::span<const Tensor> inputs, const Attrs& attrs,
                                      std::span<Tensor> outputs) -> Status {
    bool any = false;
    for (const Tensor& tensor : inputs) any = any || is_half(tensor.dtype());
    for (const Tensor& tensor : outputs) any = any || is_half(tensor.dtype());
    if (!any) return kernel(inputs, attrs, outputs);
    std::vector<Tensor> wide_inputs(inputs.begin(), inputs.end());
    for (Tensor& tensor : wide_inputs) {
      if (!is_half(tensor.dtype())) continue;
      Tensor wide = TRY(Tensor::allocate(DType::kFloat32, tensor.shape()));
      for (int64_t i = 0, n = tensor.size(); i < n; ++i)
        wide.data<float>()[i] = half_to_float(tensor.data<uint16_t>()[i], tensor.dtype());
      tensor = wide;
    }
    std::vector<Tensor> wide_outputs(outputs.begin(), outputs.end());
    for (Tensor& tensor : wide_outputs)
      if (is_half(tensor.dtype())) tensor = TRY(Tensor::allocate(DType::kFloat32, tensor.shape()));
    TRY(kernel(wide_inputs, attrs, wide_outputs));
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!is_half(outputs[k].dtype())) continue;
      const float* wide = wide_outputs[k].data<float>();
      for (int64_t i = 0, n = outputs[k].size(); i < n; ++i)
        outputs[k].data<uint16_t>()[i] = float_to_half(wide[i], outputs[k].dtype());
    }
    return {};
  };
}

}  // namespace collage
