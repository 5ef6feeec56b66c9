#include "measure/peak_loops.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

namespace collage {

namespace {

// Independent sums: at least as many as an instruction's latency in cycles times how many of it a
// core begins in one, or it waits for its own results. Of 16 registers two hold factors.
constexpr int kSums512 = 24, kSums256 = 12, kSums128 = 12;

// Every loop over the sums below is unrolled whole: an array that is indexed in a loop lies in
// memory, and each multiply-add would load and store. The compiler learns of no sum that it equals
// another, or it would compute one of them, nor that it grows by a constant.
// tests/measure/peak_loops_test.py looks.

__attribute__((target("avx512f"))) float multiply_add_512(int rounds) {
  __m512 sums[kSums512];
#pragma GCC unroll 32
  for (int i = 0; i < kSums512; ++i) sums[i] = _mm512_set1_ps(0.5F);
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums512; ++i) {
      sums[i] = _mm512_fmadd_ps(sums[i], x, y);
      asm volatile("" : "+v"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums512; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float multiply_add_256(int rounds) {
  __m256 sums[kSums256];
#pragma GCC unroll 32
  for (int i = 0; i < kSums256; ++i) sums[i] = _mm256_set1_ps(0.5F);
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums256; ++i) {
      sums[i] = _mm256_fmadd_ps(sums[i], x, y);
      asm volatile("" : "+x"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums256; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

float multiply_add_128(int rounds) {
  __m128 sums[kSums128];
#pragma GCC unroll 32
  for (int i = 0; i < kSums128; ++i) sums[i] = _mm_set1_ps(0.5F);
  const __m128 x = _mm_set1_ps(0.999F), y = _mm_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums128; ++i) {
      sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], x), y);
      asm volatile("" : "+x"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums128; ++i) sums[0] = _mm_add_ps(sums[0], sums[i]);
  return _mm_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) float multiply_bfloat16(int rounds) {
  __m512 sums[kSums512];
#pragma GCC unroll 32
  for (int i = 0; i < kSums512; ++i) sums[i] = _mm512_setzero_ps();
  const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3c00);  // about 0.008
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums512; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], x, x);
      asm volatile("" : "+v"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums512; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) float multiply_int16(int rounds) {
  __m512i sums[kSums512];
#pragma GCC unroll 32
  for (int i = 0; i < kSums512; ++i) sums[i] = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi16(1);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums512; ++i) {
      sums[i] = _mm512_dpwssd_epi32(sums[i], x, x);
      asm volatile("" : "+v"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums512; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  return static_cast<float>(_mm512_cvtsi512_si32(sums[0]));
}

__attribute__((target("avx512f,avx512vnni"))) float multiply_int8(int rounds) {
  __m512i sums[kSums512];
#pragma GCC unroll 32
  for (int i = 0; i < kSums512; ++i) sums[i] = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi32(0x01010101);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums512; ++i) {
      sums[i] = _mm512_dpbusd_epi32(sums[i], x, x);
      asm volatile("" : "+v"(sums[i]));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums512; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  return static_cast<float>(_mm512_cvtsi512_si32(sums[0]));
}

// The registers that a loop over memory is compiled for.
struct Of512 {
  typedef long long Vector __attribute__((vector_size(64), may_alias));
};
struct Of256 {
  typedef long long Vector __attribute__((vector_size(32), may_alias));
};
struct Of128 {
  typedef long long Vector __attribute__((vector_size(16), may_alias));
};

// Four streams at once: of one alone a core has too few lines under way to use all of the memory.
template <typename Width>
[[gnu::always_inline]] inline long long read_vectors(const void* from, size_t bytes) {
  constexpr size_t kStreams = 4, kSums = 2 * kStreams;
  using Vector = typename Width::Vector;
  const auto* vector = static_cast<const Vector*>(from);
  const size_t vectors = bytes / sizeof(Vector) / kStreams;  // of each
  Vector sums[kSums];
#pragma GCC unroll 8
  for (size_t j = 0; j < kSums; ++j) sums[j] = Vector{};
  for (size_t i = 0; i < vectors; i += 2) {
#pragma GCC unroll 8
    for (size_t j = 0; j < kSums; ++j) sums[j] ^= vector[j / 2 * vectors + i + j % 2];
  }
#pragma GCC unroll 8
  for (size_t j = 1; j < kSums; ++j) sums[0] ^= sums[j];
  long long all = 0;
#pragma GCC unroll 8
  for (size_t lane = 0; lane < sizeof(Vector) / sizeof all; ++lane) all ^= sums[0][lane];
  return all;
}
template <typename Width>
[[gnu::always_inline]] inline void write_vectors(void* to, size_t bytes) {
  using Vector = typename Width::Vector;
  auto* vector = static_cast<Vector*>(to);
  for (size_t i = 0; i < bytes / sizeof(Vector); i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) vector[i + j] = Vector{} + 1;
  }
}

__attribute__((target("avx512f"))) long long read_512(const void* from, size_t bytes) {
  return read_vectors<Of512>(from, bytes);
}
__attribute__((target("avx2"))) long long read_256(const void* from, size_t bytes) {
  return read_vectors<Of256>(from, bytes);
}
long long read_128(const void* from, size_t bytes) { return read_vectors<Of128>(from, bytes); }
__attribute__((target("avx512f"))) void write_512(void* to, size_t bytes) {
  write_vectors<Of512>(to, bytes);
}
__attribute__((target("avx2"))) void write_256(void* to, size_t bytes) {
  write_vectors<Of256>(to, bytes);
}
void write_128(void* to, size_t bytes) { write_vectors<Of128>(to, bytes); }

}  // namespace

ArithmeticLoop float32_loop() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, kSums512 * 16 * 2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_256, kSums256 * 8 * 2};
  return {multiply_add_128, kSums128 * 4 * 2};
}

ArithmeticLoop bfloat16_loop() {
  if (!__builtin_cpu_supports("avx512bf16")) return {};
  return {multiply_bfloat16, kSums512 * 32 * 2};
}

ArithmeticLoop int16_loop() {
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw")) return {};
  return {multiply_int16, kSums512 * 32 * 2};
}

ArithmeticLoop int8_loop() {
  if (!__builtin_cpu_supports("avx512vnni")) return {};
  return {multiply_int8, kSums512 * 64 * 2};
}

bool has_int8_matrix_unit() {
  constexpr unsigned kLeaf = 7, kAmxInt8 = 1U << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kLeaf, 0, &a, &b, &c, &d) != 0 && (d & kAmxInt8) != 0;
}

long long read_buffer(const void* buffer, size_t bytes) {
  if (__builtin_cpu_supports("avx512f")) return read_512(buffer, bytes);
  return __builtin_cpu_supports("avx2") ? read_256(buffer, bytes) : read_128(buffer, bytes);
}

void write_buffer(void* buffer, size_t bytes) {
  if (__builtin_cpu_supports("avx512f")) return write_512(buffer, bytes);
  return __builtin_cpu_supports("avx2") ? write_256(buffer, bytes) : write_128(buffer, bytes);
}

void copy_buffer(void* buffer, size_t bytes) {
  std::memcpy(static_cast<char*>(buffer) + bytes / 2, buffer, bytes / 2);
}

}  // namespace collage
