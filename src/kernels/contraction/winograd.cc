#include "kernels/contraction/winograd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/integers.h"
#include "kernels/contraction/winograd_lines.h"

namespace collage::contraction::winograd {
namespace {

constexpr int64_t kTaps = 3;    // along a side
constexpr int64_t kBlock = 16;  // channels

using lines::Vector;

struct Pixels {
  const float* plane;
  const int32_t* sources;
  COLLAGE_VECTORS_INSIDE Vector operator()(int64_t i) const {
    return {sources[i] < 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(plane + sources[i])};
  }
};

struct Sums {
  const float* at;
  int64_t place;
  COLLAGE_VECTORS_INSIDE Vector operator()(int64_t i) const {
    return {_mm512_load_ps(at + i * place)};
  }
};

/// Without their signs floats have the order of their bits, with NaN above infinity.
struct Raise {
  int32_t* most;  ///< of each place, 16 channels
  COLLAGE_VECTORS_INSIDE void operator()(Vector x, int64_t place) const {
    int32_t* to = most + place * kBlock;
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff));
    _mm512_store_si512(to, _mm512_max_epi32(_mm512_load_si512(to), magnitude));
  }
};

struct Write {
  const float* scales;
  int64_t place_bytes;
  char* to;
  COLLAGE_VECTORS_INSIDE void operator()(Vector x, int64_t place) const {
    const __m512i integers = _mm512_cvtps_epi32(_mm512_mul_ps(x.v, _mm512_set1_ps(scales[place])));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + place * place_bytes),
                       _mm512_cvtsepi32_epi16(integers));
  }
};

struct Store {
  float* to;
  int64_t place;
  COLLAGE_VECTORS_INSIDE void operator()(Vector x, int64_t i) const {
    _mm512_store_ps(to + i * place, x.v);
  }
};

/// What there is for one form.
template <Form kForm>
struct Transformations {
  static constexpr int64_t kStep = step_of(kForm), kSide = side_of(kForm),
                           kPlaces = places_of(kForm);
  using Side = lines::Side<kForm>;
  using Row = typename Side::template Of<Vector>;
  using Patch = typename Side::template Of<Row>;

  struct ImageRows {
    const float* plane;
    const int32_t* sources;
    COLLAGE_VECTORS_INSIDE Row operator()(int64_t i) const {
      return lines::there(Side::template all<Vector>(Pixels{plane, sources + i * kSide}));
    }
  };
  static COLLAGE_VECTORS_INSIDE Patch patch(const Channels& channels, int64_t p) {
    return lines::there(
        Side::template all<Row>(ImageRows{channels.plane, channels.sources + p * kPlaces}));
  }
  /// Visits the places of a patch.
  template <typename Visit>
  struct Places {
    Visit visit;
    COLLAGE_VECTORS_INSIDE void operator()(const Row& row, int64_t i) const {
      lines::each(row, visit, i * kSide);
    }
  };

  static COLLAGE_VECTORS void raise_largest(const Channels& channels, Numbers& largest) {
    alignas(64) int32_t most[kPlaces * kBlock] = {};
    for (int64_t p = 0; p < channels.patches; ++p)
      lines::each(patch(channels, p), Places<Raise>{{most}});
    for (int64_t i = 0; i < kPlaces; ++i) {
      float& place = largest[static_cast<size_t>(i)];
      const int32_t* there = most + i * kBlock;
      place = std::bit_cast<float>(
          std::max(std::bit_cast<int32_t>(place), *std::max_element(there, there + kBlock)));
    }
  }

  static COLLAGE_VECTORS void copy(const Channels& channels, const Numbers& scales,
                                   int64_t place_bytes, uint16_t* to) {
    char* line = reinterpret_cast<char*>(to);
    for (int64_t p = 0; p < channels.patches; ++p, line += kTileDepth * 2)
      lines::each(patch(channels, p), Places<Write>{{scales.data(), place_bytes, line}});
  }

  struct RowsOfSums {
    const float* at;
    int64_t place;
    COLLAGE_VECTORS_INSIDE Row operator()(int64_t i) const {
      return Side::template all<Vector>(Sums{at + i * kSide * place, place});
    }
  };
  struct RowsOfResult {
    float* to;
    int64_t place;
    COLLAGE_VECTORS_INSIDE void operator()(const Row& row, int64_t i) const {
      lines::each(lines::back(row), Store{to + i * kStep * place, place});
    }
  };
  static COLLAGE_VECTORS void back(const float* sums, int64_t rows, float* results) {
    const int64_t place = rows * kBlockColumns;
    for (int64_t at = 0; at < place; at += kTileColumns)
      lines::each(lines::back(Side::template all<Row>(RowsOfSums{sums + at, place})),
                  RowsOfResult{results + at, place});
  }
};
using OfTwo = Transformations<Form::kTwo>;
using OfFour = Transformations<Form::kFour>;

/// G g G^T, place by place.
std::array<double, kMostPlaces> transformed_weights(Form form, const float* g) {
  const auto side = static_cast<size_t>(side_of(form));
  std::array<std::array<double, 6>, kTaps> rows;
  for (size_t i = 0; i < kTaps; ++i)
    rows[i] = lines::weights(form, static_cast<double>(g[3 * i]), static_cast<double>(g[3 * i + 1]),
                             static_cast<double>(g[3 * i + 2]));
  std::array<double, kMostPlaces> result{};
  for (size_t j = 0; j < side; ++j) {
    const auto column = lines::weights(form, rows[0][j], rows[1][j], rows[2][j]);
    for (size_t i = 0; i < side; ++i) result[i * side + j] = column[i];
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

Extents by_places(const Extents& c, Form form) {
  Extents result = c;
  std::vector<Pass>& passes = result.taps.passes;
  passes.clear();
  for (int64_t place = 0; place < places_of(form); ++place)
    passes.push_back({{0, 0, 0}, {{{0, 0, 0}, {place}}}});
  return result;
}

Transformed transformed(const Contraction& c, Form form) {
  const Branch& from = c.branches[0];
  const int64_t places = places_of(form);
  Transformed result{c, {}};
  static_cast<Extents&>(result.contraction) = by_places(c, form);
  Branch& to = result.contraction.branches[0];
  to.weights = Tensor::empty(DType::kFloat32, {from.out_channels, c.in_channels, places});
  to.channel_stride = places;
  to.column_stride = c.in_channels * places;
  const float* weights = from.weights.data<float>();
  float* written = to.weights.data<float>();
  float largest[kMostPlaces] = {};
#pragma omp parallel for schedule(static) reduction(max : largest[:kMostPlaces])
  for (int64_t column = 0; column < from.out_channels; ++column)
    for (int64_t channel = 0; channel < c.in_channels; ++channel) {
      const auto all = transformed_weights(
          form, weights + column * from.column_stride + channel * from.channel_stride);
      float* there = written + column * to.column_stride + channel * to.channel_stride;
      for (size_t p = 0; p < static_cast<size_t>(places); ++p) {
        there[p] = static_cast<float>(all[p]);
        largest[p] = std::max(largest[p], std::abs(there[p]));
      }
    }
  for (size_t p = 0; p < kMostPlaces; ++p) result.units[p] = largest[p] > 0 ? largest[p] : 1;
  const int64_t kernels = from.out_channels * c.in_channels;
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < kernels; ++k)
    for (int64_t p = 0; p < places; ++p)
      written[k * places + p] /= result.units[static_cast<size_t>(p)];
  return result;
}

Patches plan_patches(const Contraction& c, Form form) {
  const int64_t side = side_of(form), step = step_of(form);
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
    for (int64_t y = 0; y < c.out[1]; y += step)
      for (int64_t x = 0; x < c.out[2]; x += step, ++patches.count) {
        for (int64_t i = 0; i < side * side; ++i)
          patches.sources.push_back(
              element(c.in, image, in_blocks, y + low[1] + i / side, x + low[2] + i % side));
        for (int64_t i = 0; i < step * step; ++i)
          patches.results[static_cast<size_t>(i)].push_back(
              element(c.out, image, out_blocks, y + i / step, x + i % step));
      }
  return patches;
}

void raise_largest(Form form, const Channels& channels, Numbers& largest) {
  (form == Form::kTwo ? OfTwo::raise_largest : OfFour::raise_largest)(channels, largest);
}

void copy_patches(Form form, const Channels& channels, const Numbers& scales, int64_t place_bytes,
                  uint16_t* to) {
  (form == Form::kTwo ? OfTwo::copy : OfFour::copy)(channels, scales, place_bytes, to);
}

void transform_back(Form form, const float* sums, int64_t rows, float* results) {
  (form == Form::kTwo ? OfTwo::back : OfFour::back)(sums, rows, results);
}

}  // namespace collage::contraction::winograd
