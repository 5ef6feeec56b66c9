#include "backend/onednn/kernels/split.h"

#include <cstring>

#include "ops/half.h"

namespace collage::onednn {

void repeat_rows(const uint16_t* source, uint16_t* target, int64_t rows, int64_t width) {
  const auto bytes = static_cast<size_t>(width) * sizeof(uint16_t);
#pragma omp parallel for schedule(static) if (rows * width > 4096)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t part = 0; part < 2; ++part)
      std::memcpy(target + (2 * row + part) * width, source + row * width, bytes);
}

Tensor split_weights(const Tensor& weights, size_t dim, int64_t parts) {
  if (parts == 1) return weights;
  const Shape& shape = weights.shape();
  Shape wide = shape;
  wide[dim] *= parts;
  Tensor result = Tensor::empty(DType::kFloat32, wide);
  int64_t outer = 1, inner = shape[dim];
  for (size_t d = 0; d < dim; ++d) outer *= shape[d];
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const float* from = weights.data<float>();
  float* to = result.data<float>();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      float w = from[o * inner + i], high = bfloat16_to_float(float_to_bfloat16(w));
      float* end = to + (o + 1) * inner * parts + i;
      end[-inner] = high;
      end[-2 * inner] = bfloat16_to_float(float_to_bfloat16(w - high));
    }
  return result;
}

}  // namespace collage::onednn
