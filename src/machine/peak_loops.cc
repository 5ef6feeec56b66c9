#include "machine/peak_loops.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

namespace collage {

namespace {

// Sixteen independent accumulators: latency (4 cycles) times throughput (2 a cycle) and some more.
constexpr int kAccumulators = 16;

__attribute__((target("avx512f"))) float multiply_add_512(int rounds) {
  __m512 acc[kAccumulators];
  for (auto& a : acc) a = _mm512_set1_ps(0.5F);
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) acc[i] = _mm512_fmadd_ps(acc[i], x, y);
  __m512 sum = acc[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_ps(sum, acc[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) float multiply_add_256(int rounds) {
  __m256 acc[kAccumulators - 4];
  for (auto& a : acc) a = _mm256_set1_ps(0.5F);
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  __m256 sum = acc[0];
  for (int i = 1; i < kAccumulators - 4; ++i) sum = _mm256_add_ps(sum, acc[i]);
  return _mm256_cvtss_f32(sum);
}

float multiply_add_scalar(int rounds) {
  float acc[8] = {};
  for (int r = 0; r < rounds; ++r)
    for (float& a : acc) a = a * 0.999F + 0.001F;
  float sum = 0;
  for (float a : acc) sum += a;
  return sum;
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) float multiply_bfloat16(int rounds) {
  __m512 acc[kAccumulators];
  for (auto& a : acc) a = _mm512_setzero_ps();
  const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3c00);  // about 0.008
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) acc[i] = _mm512_dpbf16_ps(acc[i], x, x);
  __m512 sum = acc[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_ps(sum, acc[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) float multiply_int16(int rounds) {
  __m512i acc[kAccumulators];
  for (auto& a : acc) a = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi16(1);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) {
      acc[i] = _mm512_dpwssd_epi32(acc[i], x, x);
      asm volatile("" : "+v"(acc[i]));  // else the sum of a loop of constants is one product
    }
  }
  __m512i sum = acc[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_epi32(sum, acc[i]);
  int numbers[16];
  _mm512_storeu_si512(numbers, sum);
  return static_cast<float>(numbers[0]);
}

__attribute__((target("avx512f,avx512vnni"))) float multiply_int8(int rounds) {
  __m512i acc[kAccumulators];
  for (auto& a : acc) a = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi32(0x01010101);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) {
      acc[i] = _mm512_dpbusd_epi32(acc[i], x, x);
      asm volatile("" : "+v"(acc[i]));
    }
  }
  __m512i sum = acc[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_epi32(sum, acc[i]);
  return static_cast<float>(_mm512_cvtsi512_si32(sum));
}

// What every width is compiled from: 64 bytes at a time, as many vectors as that takes.
typedef long long Line __attribute__((vector_size(64), may_alias));

// Four streams at once: of one alone a core has too few lines under way to use all of the memory.
[[gnu::always_inline]] inline long long read_lines(const void* from, size_t bytes) {
  constexpr size_t kStreams = 4;
  const Line* line = static_cast<const Line*>(from);
  const size_t lines = bytes / sizeof(Line) / kStreams;  // of each
  Line sums[2 * kStreams] = {};
  for (size_t i = 0; i < lines; i += 2)
    for (size_t j = 0; j < 2 * kStreams; ++j) sums[j] ^= line[j / 2 * lines + i + j % 2];
  for (size_t j = 1; j < 8; ++j) sums[0] ^= sums[j];
  return sums[0][0] ^ sums[0][1] ^ sums[0][2] ^ sums[0][3] ^ sums[0][4] ^ sums[0][5] ^ sums[0][6] ^
         sums[0][7];
}
[[gnu::always_inline]] inline void write_lines(void* to, size_t bytes) {
  Line* line = static_cast<Line*>(to);
  const Line value = {1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < bytes / sizeof(Line); ++i) line[i] = value;
}

__attribute__((target("avx512f"))) long long read_512(const void* from, size_t bytes) {
  return read_lines(from, bytes);
}
__attribute__((target("avx2"))) long long read_256(const void* from, size_t bytes) {
  return read_lines(from, bytes);
}
long long read_128(const void* from, size_t bytes) { return read_lines(from, bytes); }
__attribute__((target("avx512f"))) void write_512(void* to, size_t bytes) {
  write_lines(to, bytes);
}
__attribute__((target("avx2"))) void write_256(void* to, size_t bytes) { write_lines(to, bytes); }
void write_128(void* to, size_t bytes) { write_lines(to, bytes); }

}  // namespace

ArithmeticLoop float32_loop() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, kAccumulators * 16 * 2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_256, (kAccumulators - 4) * 8 * 2};
  return {multiply_add_scalar, 8 * 2};
}

ArithmeticLoop bfloat16_loop() {
  if (!__builtin_cpu_supports("avx512bf16")) return {};
  return {multiply_bfloat16, kAccumulators * 32 * 2};
}

ArithmeticLoop int16_loop() {
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw")) return {};
  return {multiply_int16, kAccumulators * 32 * 2};
}

ArithmeticLoop int8_loop() {
  if (!__builtin_cpu_supports("avx512vnni")) return {};
  return {multiply_int8, kAccumulators * 64 * 2};
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
