#include "ops/half.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace collage {

namespace {

constexpr int64_t kChunk = int64_t{1} << 14;  // elements of one thread's turn

// Every processor with AVX2 has F16C, which not all compilers can ask for by name.
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

// Both return how many elements they converted: all but the last few.
__attribute__((target("avx2,f16c"))) int64_t widen_vectors(const uint16_t* from, int64_t count,
                                                           float* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
__attribute__((target("avx2,f16c"))) int64_t narrow_vectors(const float* from, int64_t count,
                                                            uint16_t* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

void widen(const uint16_t* from, DType dtype, int64_t count, float* to) {
  int64_t i = dtype == DType::kFloat16 && has_f16c() ? widen_vectors(from, count, to) : 0;
  for (; i < count; ++i) to[i] = half_to_float(from[i], dtype);
}
void narrow(const float* from, DType dtype, int64_t count, uint16_t* to) {
  int64_t i = dtype == DType::kFloat16 && has_f16c() ? narrow_vectors(from, count, to) : 0;
  for (; i < count; ++i) to[i] = float_to_half(from[i], dtype);
}

}  // namespace

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

void halves_to_floats(const uint16_t* from, DType dtype, int64_t count, float* to) {
#pragma omp parallel for schedule(static) if (count > 4 * kChunk)
  for (int64_t begin = 0; begin < count; begin += kChunk)
    widen(from + begin, dtype, std::min(kChunk, count - begin), to + begin);
}

void floats_to_halves(const float* from, DType dtype, int64_t count, uint16_t* to) {
#pragma omp parallel for schedule(static) if (count > 4 * kChunk)
  for (int64_t begin = 0; begin < count; begin += kChunk)
    narrow(from + begin, dtype, std::min(kChunk, count - begin), to + begin);
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
      halves_to_floats(tensor.data<uint16_t>(), tensor.dtype(), tensor.size(), wide.data<float>());
      tensor = wide;
    }
    std::vector<Tensor> wide_outputs(outputs.begin(), outputs.end());
    for (Tensor& tensor : wide_outputs)
      if (is_half(tensor.dtype())) tensor = TRY(Tensor::allocate(DType::kFloat32, tensor.shape()));
    TRY(kernel(wide_inputs, attrs, wide_outputs));
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!is_half(outputs[k].dtype())) continue;
      floats_to_halves(wide_outputs[k].data<float>(), outputs[k].dtype(), outputs[k].size(),
                       outputs[k].data<uint16_t>());
    }
    return {};
  };
}

}  // namespace collage
