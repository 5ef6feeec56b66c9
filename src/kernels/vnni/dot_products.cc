#include "kernels/vnni/dot_products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "kernels/contraction/loader_name.h"
#include "kernels/vnni/instructions.h"

namespace collage::vnni {
namespace {

using contraction::Block;
using contraction::DotEnding;
using contraction::kBlockColumns;
using contraction::kFewestDotRows;
using contraction::kMostDotRows;
using contraction::kTileColumns;
using contraction::kTileDepth;
using contraction::kTileElements;
using contraction::Parts;

constexpr int64_t kRowBytes = kTileDepth * 2;  // from row to row of the image

COLLAGE_VNNI_INSIDE __m512i broadcast(const char* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof bits);
  return _mm512_set1_epi32(bits);
}

COLLAGE_VNNI_INSIDE void store(__m512i sum, __m512 factor, bool first, float* c) {
  const __m512 value = _mm512_cvtepi32_ps(sum);
  _mm512_store_ps(
      c, first ? _mm512_mul_ps(value, factor) : _mm512_fmadd_ps(value, factor, _mm512_load_ps(c)));
}

/// Brings what the ending reads and writes into the core's own cache.
__attribute__((noinline)) void fetch(const DotEnding& ending, int rows, int down, int across) {
  for (int i = 0; i < down; ++i)
    for (int r = 0; r < rows; ++r) {
      const int64_t at = ending.rows[i][r];
      if (at < 0) continue;
      for (int j = 0; j < across; ++j) {
        __builtin_prefetch(ending.out[j] + at, 1);
        if (ending.tensor[j] != nullptr) __builtin_prefetch(ending.tensor[j] + at);
      }
    }
}

// One tile across of the ending, for sums that were kept as integers.
COLLAGE_VNNI void finish_tile(const Block& block, int rows, int down, int across) {
  const DotEnding& ending = *block.ending;
  const __m512 factor = _mm512_mul_ps(_mm512_loadu_ps(block.factors + across * kTileColumns),
                                      _mm512_set1_ps(block.factor)),
               columns = _mm512_loadu_ps(ending.columns[across]), low = _mm512_set1_ps(ending.low),
               high = _mm512_set1_ps(ending.high);
  const auto exist = static_cast<__mmask16>(ending.exist[across]);
  const float* tensor = ending.tensor[across];
  float* out = ending.out[across];
  const float* sums = block.c + across * kTileColumns;
  for (int i = 0; i < down; ++i)
    for (int r = 0; r < rows; ++r, sums += kBlockColumns) {
      const int64_t at = ending.rows[i][r];
      if (at < 0) continue;
      __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums)), factor, columns);
      if (tensor != nullptr)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(exist, tensor + at));
      // In this order NaN stays.
      value = _mm512_min_ps(high, _mm512_max_ps(low, value));
      _mm512_storeu_ps(out + at, _mm512_maskz_mov_ps(exist, value));
    }
}

// Not inside: the sums of the products need all registers.
COLLAGE_VNNI __attribute__((noinline)) void finish(const Block& block, int rows, int down,
                                                   int across) {
  for (int j = 0; j < across; ++j) finish_tile(block, rows, down, j);
}

// The sums of so many rows. No array: compilers keep those in memory beside the registers.
template <int kRows, int kAcross>
struct Sums {
  __m512i left, right;  // tile across
  Sums<kRows - 1, kAcross> below;

  COLLAGE_VNNI_INSIDE void clear() {
    left = right = _mm512_setzero_si512();
    below.clear();
  }
  COLLAGE_VNNI_INSIDE void add(const char* a, __m512i b0, __m512i b1) {
    const __m512i pair = broadcast(a);
    add_products(left, pair, b0);
    if constexpr (kAcross == 2) add_products(right, pair, b1);
    below.add(a + kRowBytes, b0, b1);
  }
  COLLAGE_VNNI_INSIDE void store_to(float* c, __m512 factor0, __m512 factor1, bool first) const {
    store(left, factor0, first, c);
    if constexpr (kAcross == 2) store(right, factor1, first, c + kTileColumns);
    below.store_to(c + kBlockColumns, factor0, factor1, first);
  }
  COLLAGE_VNNI_INSIDE void keep(float* c) const {
    _mm512_store_si512(c, left);
    if constexpr (kAcross == 2) _mm512_store_si512(c + kTileColumns, right);
    below.keep(c + kBlockColumns);
  }
};
template <int kAcross>
struct Sums<0, kAcross> {
  COLLAGE_VNNI_INSIDE void clear() {}
  COLLAGE_VNNI_INSIDE void add(const char*, __m512i, __m512i) {}
  COLLAGE_VNNI_INSIDE void store_to(float*, __m512, __m512, bool) const {}
  COLLAGE_VNNI_INSIDE void keep(float*) const {}
};

template <int kRows, int kDown, int kAcross>
COLLAGE_VNNI void multiply(const Block& block) {
  constexpr int64_t kLast = kAcross - 1;
  const __m512 unit = _mm512_set1_ps(block.factor);
  const __m512 factor0 = _mm512_mul_ps(_mm512_loadu_ps(block.factors), unit);
  const __m512 factor1 = _mm512_mul_ps(_mm512_loadu_ps(block.factors + kLast * kTileColumns), unit);
  const uint16_t* b = block.b;
  const char* next = block.next;
  int64_t step = 0;
  const DotEnding* const ending = block.ending;
  if (ending != nullptr) fetch(*ending, kRows, kDown, kAcross);
  do {
    Sums<kRows, kAcross> upper;
    Sums<kDown == 2 ? kRows : 0, kAcross> lower;
    upper.clear();
    lower.clear();
    const bool first = step == 0;
    const int64_t end = std::min(step + block.run, block.step_count);
    do {
      for (int64_t line = 0; line < block.next_lines; ++line, next += 64)
        _mm_prefetch(next, _MM_HINT_T1);
      const char* a0 = reinterpret_cast<const char*>(block.a[0]) + block.steps[step];
      const char* a1 = reinterpret_cast<const char*>(block.a[kDown - 1]) + block.steps[step];
      const char* const row_end = a0 + kRowBytes;
      do {
        const __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + kLast * kTileElements);
        upper.add(a0, b0, b1);
        lower.add(a1, b0, b1);
        a0 += 4;
        a1 += 4;
        b += 2 * kTileColumns;
      } while (a0 != row_end);
      b += kLast * kTileElements;
    } while (++step < end);
    if (ending != nullptr) {
      upper.keep(block.c);
      lower.keep(block.c + kRows * kBlockColumns);
      finish(block, kRows, kDown, kAcross);
      return;
    }
    upper.store_to(block.c, factor0, factor1, first);
    lower.store_to(block.c + kRows * kBlockColumns, factor0, factor1, first);
  } while (step < block.step_count);
}

using Multiply = void (*)(const Block&);
template <int kDown, int kAcross, int... kMore>
constexpr auto table(std::integer_sequence<int, kMore...>) {
  return std::array<Multiply, sizeof...(kMore)>{
      multiply<kFewestDotRows + kMore, kDown, kAcross>...};
}
using Rows = std::make_integer_sequence<int, kMostDotRows - kFewestDotRows + 1>;
/// By tiles down, tiles across and rows of a tile.
constexpr std::array kMultiply = {std::array{table<1, 1>(Rows()), table<1, 2>(Rows())},
                                  std::array{table<2, 1>(Rows()), table<2, 2>(Rows())}};

class DotMicroKernel : public contraction::MicroKernel {
 public:
  const char* loader() const override { return COLLAGE_NAME_OF(vnni) ".contraction"; }
  bool multiplies(const Parts& parts) const override {
    return std::find(std::begin(kAllIntegers), std::end(kAllIntegers), parts) !=
           std::end(kAllIntegers);
  }
  void multiply(const Block& block, Parts, int tile_rows, int tiles_down,
                int tiles_across) const override {
    if (block.step_count == 0) {  // the kernels take a step at least
      std::fill_n(block.c, tiles_down * tile_rows * kBlockColumns, 0.0f);
      return;
    }
    kMultiply[static_cast<size_t>(tiles_down - 1)][static_cast<size_t>(tiles_across - 1)]
             [static_cast<size_t>(tile_rows - kFewestDotRows)](block);
  }
};

}  // namespace

const contraction::MicroKernel& dot_micro_kernel() {
  static const DotMicroKernel instance;
  return instance;
}

}  // namespace collage::vnni
