// Computed matrices as operands of the matrix unit: split into parts of bfloat16 and arranged as
// tiles, 32 columns or rows at a time. An operand's depth comes in pairs; here d is paired with d +
// 16, on both sides.
#pragma once

#include <cstdint>

#include "backend/amx/kernels/instructions.h"
#include "backend/amx/kernels/tiles.h"
#include "backend/contraction/kernels/vectors.h"

namespace collage::amx {

using contraction::mask_of;

/// Rounds to the nearest bfloat16, in the upper half; halves go away from zero.
COLLAGE_AMX inline __m512i rounded(__m512 x) {
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}
COLLAGE_AMX inline __m512i rounded_unless_nan(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  return _mm512_mask_add_epi32(bits, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), bits,
                               _mm512_set1_epi32(0x8000));
}

enum class Cut {
  kToNearest,    // each part
  kTowardsZero,  // parts but the last, in less time; a NaN may become a number
};

/// Splits 16 pairs of numbers into parts: `even` in the lower halves.
template <int kParts, Cut kCut = Cut::kToNearest>
struct Pairs {
  __m512i part[kParts];

  COLLAGE_AMX Pairs(__m512 even, __m512 odd) {
    constexpr __mmask32 kOdd = 0xaaaaaaaa;
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    for (int p = 0;; ++p) {
      const bool last = p + 1 == kParts;
      __m512i a = _mm512_castps_si512(even), b = _mm512_castps_si512(odd);
      if (kCut == Cut::kToNearest) {
        a = rounded_unless_nan(even);
        b = rounded_unless_nan(odd);
      } else if (last) {
        a = rounded(even);
        b = rounded(odd);
      }
      part[p] = _mm512_mask_blend_epi16(kOdd, _mm512_srli_epi32(a, 16), b);
      if (last) return;
      even = _mm512_sub_ps(even, _mm512_castsi512_ps(_mm512_and_si512(a, upper)));
      odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(_mm512_and_si512(b, upper)));
    }
  }
};

COLLAGE_AMX inline void transpose(__m512i (&rows)[16]) {
  __m512i t[16], u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      u[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  // Quarter q of u[4 i + j] is column 4 q + j of rows 4 i to 4 i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i upper02 = _mm512_shuffle_i32x4(u[j], u[4 + j], 0x88),
                  upper13 = _mm512_shuffle_i32x4(u[j], u[4 + j], 0xdd),
                  lower02 = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0x88),
                  lower13 = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0xdd);
    rows[j] = _mm512_shuffle_i32x4(upper02, lower02, 0x88);
    rows[4 + j] = _mm512_shuffle_i32x4(upper13, lower13, 0x88);
    rows[8 + j] = _mm512_shuffle_i32x4(upper02, lower02, 0xdd);
    rows[12 + j] = _mm512_shuffle_i32x4(upper13, lower13, 0xdd);
  }
}

/// A part of a matrix in memory: existing rows and columns, `row` elements from row to row.
struct Panel {
  const float* at;
  int64_t rows, columns, row;

  COLLAGE_AMX __m512 load(int64_t r, int64_t c) const {
    return r < rows ? _mm512_maskz_loadu_ps(mask_of(columns - c), at + r * row + c)
                    : _mm512_setzero_ps();
  }
  /// Returns the panel from that row and column on.
  Panel from(int64_t r, int64_t c) const { return {at + r * row + c, rows - r, columns - c, row}; }
};

/// Stores 32 columns as left operand: `count` rows of parts. Column c is paired with column c + 16.
template <int kParts>
COLLAGE_AMX void pack_left(const Panel& panel, int64_t count, float scale, uint16_t* to) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t r = 0; r < count; ++r) {
    const Pairs<kParts> pairs(_mm512_mul_ps(panel.load(r, 0), factor),
                              _mm512_mul_ps(panel.load(r, 16), factor));
    for (int p = 0; p < kParts; ++p, to += kTileDepth) _mm512_store_si512(to, pairs.part[p]);
  }
}

/// Stores 32 columns of 16 rows, transposed, as a tile; parts lie `part` elements apart.
template <int kParts>
COLLAGE_AMX void pack_transposed(const Panel& panel, int64_t part, uint16_t* to) {
  __m512i rows[kParts][16];
  for (int r = 0; r < 16; ++r) {
    const Pairs<kParts> pairs(panel.load(r, 0), panel.load(r, 16));
    for (int p = 0; p < kParts; ++p) rows[p][r] = pairs.part[p];
  }
  for (int p = 0; p < kParts; ++p) {
    transpose(rows[p]);
    for (int r = 0; r < 16; ++r) _mm512_store_si512(to + p * part + r * kTileDepth, rows[p][r]);
  }
}

/// Stores 32 rows of 16 columns as a tile. Row r is paired with row r + 16.
template <int kParts>
COLLAGE_AMX void pack_right(const Panel& panel, int64_t part, uint16_t* to) {
  for (int r = 0; r < 16; ++r) {
    const Pairs<kParts> pairs(panel.load(r, 0), panel.load(r + 16, 0));
    for (int p = 0; p < kParts; ++p)
      _mm512_store_si512(to + p * part + r * kTileDepth, pairs.part[p]);
  }
}

}  // namespace collage::amx
