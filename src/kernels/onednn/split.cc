#include "kernels/onednn/split.h"

#include <immintrin.h>

#include <cstring>

#include "ops/half.h"

namespace collage::onednn {

namespace {

void split_row(const float* source, uint16_t* low, uint16_t* high, int64_t begin, int64_t width) {
  for (int64_t i = begin; i < width; ++i) {
    high[i] = float_to_bfloat16(source[i]);
    low[i] = float_to_bfloat16(source[i] - bfloat16_to_float(high[i]));
  }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void split_row_512(
    const float* source, uint16_t* low, uint16_t* high, uint16_t* again, int64_t width) {
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    __m512 x = _mm512_loadu_ps(source + i);
    auto h = (__m256i)_mm512_cvtneps_pbh(x);
    // The zero-masked forms: g++ 12 warns of the others that they are not initialised.
    __m512i bits = _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, h), 16);
    __m512 wide = _mm512_castsi512_ps(bits);
    auto l = (__m256i)_mm512_cvtneps_pbh(_mm512_sub_ps(x, wide));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + i), l);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(high + i), h);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(again + i), h);
  }
  split_row(source, low, high, i, width);
  std::memcpy(again + i, high + i, static_cast<size_t>(width - i) * sizeof(uint16_t));
}

}  // namespace

void repeat_rows(const uint16_t* source, uint16_t* target, int64_t rows, int64_t width) {
  const auto bytes = static_cast<size_t>(width) * sizeof(uint16_t);
#pragma omp parallel for schedule(static) if (rows * width > 4096)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t part = 0; part < 2; ++part)
      std::memcpy(target + (2 * row + part) * width, source + row * width, bytes);
}

void split_rows(const float* source, uint16_t* target, int64_t rows, int64_t width) {
  static const bool wide = __builtin_cpu_supports("avx512bf16") != 0;
#pragma omp parallel for schedule(static) if (rows * width > 4096)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = source + row * width;
    uint16_t* low = target + row * width * 3;
    if (wide) {
      split_row_512(from, low, low + width, low + 2 * width, width);
    } else {
      split_row(from, low, low + width, 0, width);
      std::memcpy(low + 2 * width, low + width, static_cast<size_t>(width) * sizeof(uint16_t));
    }
  }
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
      if (parts == 3) end[-3 * inner] = high;
    }
  return result;
}

}  // namespace collage::onednn
