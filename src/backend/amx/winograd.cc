#include "backend/amx/winograd.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/amx/vectors.h"
#include "base/integers.h"

namespace collage::amx::winograd {
namespace {

constexpr int64_t kSide = 4;    // of a patch in the image
constexpr int64_t kStep = 2;    // from patch to patch, and the side of one in the result
constexpr int64_t kTaps = 3;    // along a side
constexpr int64_t kBlock = 16;  // channels

#define COLLAGE_INSIDE COLLAGE_AMX __attribute__((always_inline)) inline

// Compilers keep arrays of vectors in memory: here each has a name.
struct Four {
  __m512 a, b, c, d;
};

/// A row or column of B^T d B.
COLLAGE_INSIDE void transform(__m512& a, __m512& b, __m512& c, __m512& d) {
  const __m512 sum = _mm512_add_ps(b, c), difference = _mm512_sub_ps(c, b);
  a = _mm512_sub_ps(a, c);
  d = _mm512_sub_ps(b, d);
  b = sum;
  c = difference;
}

/// A transformed patch, row by row.
struct Patch {
  Four rows[kSide];

  COLLAGE_INSIDE Patch(const Channels& channels, int64_t patch) {
    const int32_t* sources = channels.sources + patch * static_cast<int64_t>(kPlaces);
    rows[0] = row(channels.plane, sources);
    rows[1] = row(channels.plane, sources + kSide);
    rows[2] = row(channels.plane, sources + 2 * kSide);
    rows[3] = row(channels.plane, sources + 3 * kSide);
    transform(rows[0].a, rows[1].a, rows[2].a, rows[3].a);
    transform(rows[0].b, rows[1].b, rows[2].b, rows[3].b);
    transform(rows[0].c, rows[1].c, rows[2].c, rows[3].c);
    transform(rows[0].d, rows[1].d, rows[2].d, rows[3].d);
  }

 private:
  static COLLAGE_INSIDE __m512 pixel(const float* plane, int32_t source) {
    return source < 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(plane + source);
  }
  static COLLAGE_INSIDE Four row(const float* plane, const int32_t* sources) {
    Four four{pixel(plane, sources[0]), pixel(plane, sources[1]), pixel(plane, sources[2]),
              pixel(plane, sources[3])};
    transform(four.a, four.b, four.c, four.d);
    return four;
  }
};

/// Without their signs floats have the order of their bits, with NaN above infinity.
COLLAGE_INSIDE void raise(int32_t* most, __m512 x) {
  const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
  _mm512_store_si512(most, _mm512_max_epi32(_mm512_load_si512(most), magnitude));
}
COLLAGE_INSIDE void raise(int32_t (*most)[kBlock], const Four& four) {
  raise(most[0], four.a);
  raise(most[1], four.b);
  raise(most[2], four.c);
  raise(most[3], four.d);
}

COLLAGE_INSIDE void write(__m512 x, float scale, char* to) {
  const __m512i integers = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(scale)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtsepi32_epi16(integers));
}
COLLAGE_INSIDE void write(const Four& four, const float* scales, int64_t place_bytes, char* to) {
  write(four.a, scales[0], to);
  write(four.b, scales[1], to + place_bytes);
  write(four.c, scales[2], to + 2 * place_bytes);
  write(four.d, scales[3], to + 3 * place_bytes);
}

/// What A^T makes of four numbers.
struct Two {
  __m512 first, second;
};
COLLAGE_INSIDE Two back(const Four& m) {
  return {_mm512_add_ps(_mm512_add_ps(m.a, m.b), m.c), _mm512_sub_ps(_mm512_sub_ps(m.b, m.c), m.d)};
}
COLLAGE_INSIDE Two back(const float* sums, int64_t place) {
  return back(Four{_mm512_load_ps(sums), _mm512_load_ps(sums + place),
                   _mm512_load_ps(sums + 2 * place), _mm512_load_ps(sums + 3 * place)});
}

/// G g G^T.
std::array<double, kPlaces> transformed_weights(const float* g) {
  const auto four = [](double a, double b, double c) {
    return std::array<double, kSide>{a, (a + b + c) / 2, (a - b + c) / 2, c};
  };
  std::array<std::array<double, kSide>, kTaps> rows;
  for (size_t i = 0; i < kTaps; ++i)
    rows[i] = four(static_cast<double>(g[3 * i]), static_cast<double>(g[3 * i + 1]),
                   static_cast<double>(g[3 * i + 2]));
  std::array<double, kPlaces> result;
  for (size_t j = 0; j < kSide; ++j) {
    const auto column = four(rows[0][j], rows[1][j], rows[2][j]);
    for (size_t i = 0; i < kSide; ++i) result[i * kSide + j] = column[i];
  }
  return result;
}

}  // namespace

bool can_compute(const Contraction& c) {
  constexpr Spatial kOne{1, 1, 1};
  if (c.channels_last || c.groups != 1 || c.branches.size() != 1) return false;
  if (c.taps.stride != kOne || c.taps.up != kOne || c.taps.passes.size() != 1) return false;
  const std::vector<Tap>& taps = c.taps.passes[0].taps;
  if (taps.size() != kTaps * kTaps) return false;
  const Spatial& low = taps[0].offset;
  for (int64_t i = 0; i < kTaps * kTaps; ++i) {
    const Tap& tap = taps[static_cast<size_t>(i)];
    if (tap.offset != Spatial{low[0], low[1] + i / kTaps, low[2] + i % kTaps} ||
        tap.elements != std::vector<int64_t>{i})
      return false;
  }
  // Where patches begin is kept in 32 bits.
  const int64_t elements = c.images * c.pixels_in() * round_up(c.in_channels, kBlock);
  return low[0] == 0 && c.in[0] == 1 && c.out[0] == 1 &&
         elements <= std::numeric_limits<int32_t>::max();
}

Contraction transformed(const Contraction& c) {
  const Branch& from = c.branches[0];
  Contraction result = c;
  result.taps.passes.clear();
  for (size_t place = 0; place < kPlaces; ++place)
    result.taps.passes.push_back({{0, 0, 0}, {{{0, 0, 0}, {static_cast<int64_t>(place)}}}});
  Branch& to = result.branches[0];
  to.weights = Tensor::empty(DType::kFloat32,
                             {from.out_channels, c.in_channels, static_cast<int64_t>(kPlaces)});
  to.channel_stride = kPlaces;
  to.column_stride = c.in_channels * to.channel_stride;
  const float* weights = from.weights.data<float>();
  float* written = to.weights.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < from.out_channels; ++column)
    for (int64_t channel = 0; channel < c.in_channels; ++channel) {
      const auto places = transformed_weights(weights + column * from.column_stride +
                                              channel * from.channel_stride);
      for (size_t p = 0; p < kPlaces; ++p)
        written[column * to.column_stride + channel * to.channel_stride + static_cast<int64_t>(p)] =
            static_cast<float>(places[p]);
    }
  return result;
}

Patches plan_patches(const Contraction& c) {
  const Spatial& low = c.taps.passes[0].taps[0].offset;
  const int64_t out_blocks = ceil_div(c.branches[0].out_channels, kBlock),
                in_blocks = ceil_div(c.in_channels, kBlock);
  // Element of a pixel, or -1.
  const auto element = [](const Spatial& extent, int64_t image, int64_t blocks, int64_t y,
                          int64_t x) -> int32_t {
    if (y < 0 || y >= extent[1] || x < 0 || x >= extent[2]) return -1;
    const int64_t pixel = image * blocks * volume(extent) + y * extent[2] + x;
    return static_cast<int32_t>(pixel * kBlock);
  };
  Patches patches;
  for (int64_t image = 0; image < c.images; ++image)
    for (int64_t y = 0; y < c.out[1]; y += kStep)
      for (int64_t x = 0; x < c.out[2]; x += kStep) {
        for (int64_t i = 0; i < kSide * kSide; ++i)
          patches.sources.push_back(
              element(c.in, image, in_blocks, y + low[1] + i / kSide, x + low[2] + i % kSide));
        for (int64_t i = 0; i < kStep * kStep; ++i)
          patches.results[static_cast<size_t>(i)].push_back(
              element(c.out, image, out_blocks, y + i / kStep, x + i % kStep));
      }
  return patches;
}

COLLAGE_AMX void raise_largest(const Channels& channels, std::array<float, kPlaces>& largest) {
  alignas(64) int32_t most[kPlaces][kBlock] = {};
  for (int64_t p = 0; p < channels.patches; ++p) {
    const Patch patch(channels, p);
    raise(most + 0, patch.rows[0]);
    raise(most + 4, patch.rows[1]);
    raise(most + 8, patch.rows[2]);
    raise(most + 12, patch.rows[3]);
  }
  for (size_t i = 0; i < kPlaces; ++i)
    largest[i] = std::bit_cast<float>(
        std::max(std::bit_cast<int32_t>(largest[i]), *std::max_element(most[i], most[i] + kBlock)));
}

COLLAGE_AMX void copy_patches(const Channels& channels, const std::array<float, kPlaces>& scales,
                              int64_t place_bytes, uint16_t* to) {
  for (int64_t p = 0; p < channels.patches; ++p) {
    const Patch patch(channels, p);
    char* line = reinterpret_cast<char*>(to) + p * kTileDepth * 2;
    write(patch.rows[0], scales.data(), place_bytes, line);
    write(patch.rows[1], scales.data() + 4, place_bytes, line + 4 * place_bytes);
    write(patch.rows[2], scales.data() + 8, place_bytes, line + 8 * place_bytes);
    write(patch.rows[3], scales.data() + 12, place_bytes, line + 12 * place_bytes);
  }
}

COLLAGE_AMX void transform_back(const float* sums, int64_t rows, float* results) {
  const int64_t place = rows * kBlockColumns;
  for (int64_t at = 0; at < place; at += kTileColumns, sums += kTileColumns) {
    const Two a = back(sums, place), b = back(sums + 4 * place, place),
              c = back(sums + 8 * place, place), d = back(sums + 12 * place, place);
    const Two left = back({a.first, b.first, c.first, d.first}),
              right = back({a.second, b.second, c.second, d.second});
    _mm512_store_ps(results + at, left.first);
    _mm512_store_ps(results + place + at, right.first);
    _mm512_store_ps(results + 2 * place + at, left.second);
    _mm512_store_ps(results + 3 * place + at, right.second);
  }
}

}  // namespace collage::amx::winograd
