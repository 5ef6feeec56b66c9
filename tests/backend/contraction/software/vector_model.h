// A model of the AVX-512 instructions that the backend amx uses, after Intel's Software
// Developer's Manual, on the compiler's own vectors: names and meanings are those of <immintrin.h>,
// which therefore cannot be included beside. What would fault (an address that is not aligned) ends
// the program with a message. Rounding is to nearest unless an instruction says otherwise.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/contraction/software/tile_model.h"

typedef float __m512 __attribute__((vector_size(64), may_alias));
typedef long long __m512i __attribute__((vector_size(64), may_alias));
typedef long long __m256i __attribute__((vector_size(32), may_alias));
typedef short __m256bh __attribute__((vector_size(32), may_alias));
using __mmask16 = uint16_t;
using __mmask32 = uint32_t;

namespace collage::software {

typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Integers __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef int64_t Longs __attribute__((vector_size(64)));
typedef int16_t Shorts __attribute__((vector_size(64)));      // 32
typedef int16_t HalfShorts __attribute__((vector_size(32)));  // 16

inline Floats magnitude(Floats x) { return (Floats)((Words)x & 0x7fffffffu); }
inline Floats with_sign_of(Floats size, Floats sign) {
  return (Floats)((Words)size | ((Words)sign & 0x80000000u));
}
/// Of the results of comparisons.
inline bool any(Integers lanes) {
  for (int i = 0; i < 16; ++i)
    if (lanes[i] != 0) return true;
  return false;
}
/// All bits of each lane whose bit is set.
inline Integers lanes_of(__mmask16 mask) {
  const Integers bits = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                         1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  return (bits & static_cast<int>(mask)) != 0;
}
inline __mmask16 mask_of_lanes(Integers lanes) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (lanes[i] != 0 ? 1u : 0u) << i;
  return static_cast<__mmask16>(mask);
}

inline const void* aligned(const void* at, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes != 0) fault("an address that is not aligned");
  return at;
}
template <typename Vector>
Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <typename Vector>
void store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

/// x - floor(x), rounded down: at least 0 and less than 1.
inline float above_floor(float x) {
  if (std::isinf(x)) return 0.0f;
  if (std::isnan(x)) return x;
  const float whole = std::floor(x), rest = x - whole;
  // What rounding added to x - whole, exactly (D. Knuth's TwoSum).
  const float other = rest - x, error = (x - (rest - other)) - (whole + other);
  if (rest == 0) return -0.0f;
  return error < 0 ? std::nextafter(rest, -1.0f) : rest;
}

/// x * 2^floor(power), rounded once.
inline float scaled(float x, float power) {
  if (std::isnan(x) || std::isnan(power)) return x + power;
  if (std::isinf(power)) {
    if (power > 0) return x == 0 ? NAN : std::copysign(INFINITY, x);
    return std::isinf(x) ? NAN : std::copysign(0.0f, x);
  }
  constexpr float kMost = 1000;  // beyond which the result no longer changes
  return std::scalbn(x, static_cast<int>(std::floor(std::fmin(kMost, std::fmax(-kMost, power)))));
}

/// To the nearest bfloat16, halves to even; denormal numbers become zeros.
inline uint16_t to_bfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if (std::abs(x) < 0x1p-126f) return static_cast<uint16_t>(bits >> 16 & 0x8000);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Halves, quarters, ... of the lanes, as GCC and clang reduce.
template <typename Vector, typename Join>
auto reduced(Vector v, const Join& join) {
  for (int count = 8; count > 0; count /= 2)
    for (int i = 0; i < count; ++i) v[i] = join(v[i + count], v[i]);
  return v[0];
}

}  // namespace collage::software

enum { _MM_HINT_T1 = 2 };
enum { _MM_FROUND_TO_NEAREST_INT = 0, _MM_FROUND_TO_NEG_INF = 1, _MM_FROUND_NO_EXC = 8 };
enum { _CMP_ORD_Q = 7, _CMP_LT_OQ = 17 };

inline void _mm_prefetch(const void*, int) {}

inline __m512 _mm512_setzero_ps() { return __m512{}; }
inline __m512 _mm512_set1_ps(float x) { return x - __m512{}; }  // keeps -0
inline __m512i _mm512_set1_epi32(int x) { return (__m512i)(collage::software::Integers{} + x); }
inline __m512i _mm512_castps_si512(__m512 x) { return (__m512i)x; }
inline __m512 _mm512_castsi512_ps(__m512i x) { return (__m512)x; }

inline __m512 _mm512_loadu_ps(const void* from) { return collage::software::load<__m512>(from); }
inline __m512 _mm512_load_ps(const void* from) {
  return _mm512_loadu_ps(collage::software::aligned(from, 64));
}
inline void _mm512_storeu_ps(void* to, __m512 x) { collage::software::store(to, x); }
inline void _mm512_store_ps(void* to, __m512 x) {
  collage::software::aligned(to, 64);
  collage::software::store(to, x);
}
inline void _mm512_store_si512(void* to, __m512i x) {
  collage::software::aligned(to, 64);
  collage::software::store(to, x);
}
inline void _mm256_store_si256(__m256i* to, __m256i x) {
  collage::software::aligned(to, 32);
  collage::software::store(to, x);
}
/// Lanes whose bit is not set are not touched in memory.
inline __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void* from) {
  __m512 x{};
  for (int i = 0; i < 16; ++i)
    if ((mask >> i & 1) != 0) x[i] = static_cast<const float*>(from)[i];
  return x;
}
inline void _mm512_mask_storeu_ps(void* to, __mmask16 mask, __m512 x) {
  for (int i = 0; i < 16; ++i)
    if ((mask >> i & 1) != 0) static_cast<float*>(to)[i] = x[i];
}

inline __m512 _mm512_add_ps(__m512 a, __m512 b) { return a + b; }
inline __m512 _mm512_sub_ps(__m512 a, __m512 b) { return a - b; }
inline __m512 _mm512_mul_ps(__m512 a, __m512 b) { return a * b; }
inline __m512 _mm512_div_ps(__m512 a, __m512 b) { return a / b; }
/// The second operand where one is NaN or both are zeros.
inline __m512 _mm512_max_ps(__m512 a, __m512 b) { return a > b ? a : b; }
inline __m512 _mm512_min_ps(__m512 a, __m512 b) { return a < b ? a : b; }
inline __m512 _mm512_abs_ps(__m512 x) { return collage::software::magnitude(x); }
inline __m512 _mm512_and_ps(__m512 a, __m512 b) { return (__m512)((__m512i)a & (__m512i)b); }
inline __m512 _mm512_or_ps(__m512 a, __m512 b) { return (__m512)((__m512i)a | (__m512i)b); }
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  for (int i = 0; i < 16; ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return c;
}
inline __m512 _mm512_fmsub_ps(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, -c); }
inline __m512 _mm512_fnmadd_ps(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(-a, b, c); }
inline __m512 _mm512_scalef_ps(__m512 x, __m512 power) {
  for (int i = 0; i < 16; ++i) x[i] = collage::software::scaled(x[i], power[i]);
  return x;
}
inline __m512 _mm512_roundscale_ps(__m512 x, int how) {
  if ((how & ~_MM_FROUND_NO_EXC) != _MM_FROUND_TO_NEAREST_INT)
    collage::software::fault("only rounding to the nearest integer is modelled");
  for (int i = 0; i < 16; ++i) x[i] = std::nearbyint(x[i]);
  return x;
}
inline __m512 _mm512_reduce_ps(__m512 x, int how) {
  if ((how & ~_MM_FROUND_NO_EXC) != _MM_FROUND_TO_NEG_INF)
    collage::software::fault("only what lies above the floor is modelled");
  for (int i = 0; i < 16; ++i) x[i] = collage::software::above_floor(x[i]);
  return x;
}

inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int how) {
  using collage::software::mask_of_lanes;
  if (how == _CMP_LT_OQ) return mask_of_lanes(a < b);
  if (how != _CMP_ORD_Q) collage::software::fault("a comparison that is not modelled");
  return mask_of_lanes((a == a) & (b == b));
}
inline __m512 _mm512_mask_mov_ps(__m512 otherwise, __mmask16 mask, __m512 x) {
  return collage::software::lanes_of(mask) ? x : otherwise;
}
inline __m512 _mm512_maskz_mov_ps(__mmask16 mask, __m512 x) {
  return _mm512_mask_mov_ps(__m512{}, mask, x);
}
inline __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  return _mm512_mask_mov_ps(a, mask, b);
}
inline __m512 _mm512_mask_mul_ps(__m512 otherwise, __mmask16 mask, __m512 a, __m512 b) {
  return _mm512_mask_mov_ps(otherwise, mask, a * b);
}

inline float _mm512_reduce_add_ps(__m512 x) {
  return collage::software::reduced(x, [](float a, float b) { return a + b; });
}
inline float _mm512_reduce_max_ps(__m512 x) {
  return collage::software::reduced(x, [](float a, float b) { return a > b ? a : b; });
}

inline __m512i _mm512_and_si512(__m512i a, __m512i b) { return a & b; }
inline __m512i _mm512_add_epi32(__m512i a, __m512i b) {
  return (__m512i)((collage::software::Words)a + (collage::software::Words)b);
}
inline __m512i _mm512_mask_add_epi32(__m512i otherwise, __mmask16 mask, __m512i a, __m512i b) {
  return (__m512i)_mm512_mask_mov_ps((__m512)otherwise, mask, (__m512)_mm512_add_epi32(a, b));
}
inline __m512i _mm512_slli_epi32(__m512i x, unsigned by) {
  return by > 31 ? __m512i{} : (__m512i)((collage::software::Words)x << by);
}
inline __m512i _mm512_srli_epi32(__m512i x, unsigned by) {
  return by > 31 ? __m512i{} : (__m512i)((collage::software::Words)x >> by);
}
inline __m512i _mm512_mask_blend_epi16(__mmask32 mask, __m512i a, __m512i b) {
  auto x = (collage::software::Shorts)a;
  const auto y = (collage::software::Shorts)b;
  for (int i = 0; i < 32; ++i)
    if ((mask >> i & 1) != 0) x[i] = y[i];
  return (__m512i)x;
}

// Of each quarter of 128 bits: the lower or the upper half of a, with that of b in between.
inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) {
  return (__m512i)__builtin_shufflevector((collage::software::Integers)a,
                                          (collage::software::Integers)b, 0, 16, 1, 17, 4, 20, 5,
                                          21, 8, 24, 9, 25, 12, 28, 13, 29);
}
inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) {
  return (__m512i)__builtin_shufflevector((collage::software::Integers)a,
                                          (collage::software::Integers)b, 2, 18, 3, 19, 6, 22, 7,
                                          23, 10, 26, 11, 27, 14, 30, 15, 31);
}
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  return (__m512i)__builtin_shufflevector((collage::software::Longs)a, (collage::software::Longs)b,
                                          0, 8, 2, 10, 4, 12, 6, 14);
}
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  return (__m512i)__builtin_shufflevector((collage::software::Longs)a, (collage::software::Longs)b,
                                          1, 9, 3, 11, 5, 13, 7, 15);
}
/// Two quarters of a, then two of b, by two bits of `which` each.
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int which) {
  __m512i result;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int from = which >> 2 * quarter & 3;
    for (int i = 0; i < 2; ++i) result[2 * quarter + i] = (quarter < 2 ? a : b)[2 * from + i];
  }
  return result;
}

inline __m512i _mm512_cvtepu16_epi32(__m256i x) {
  const auto from = (collage::software::HalfShorts)x;
  collage::software::Integers result;
  for (int i = 0; i < 16; ++i) result[i] = static_cast<uint16_t>(from[i]);
  return (__m512i)result;
}
inline __m256bh _mm512_cvtneps_pbh(__m512 x) {
  __m256bh result;
  for (int i = 0; i < 16; ++i)
    result[i] = static_cast<int16_t>(collage::software::to_bfloat16(x[i]));
  return result;
}
