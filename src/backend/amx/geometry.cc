#include "backend/amx/geometry.h"

#include <algorithm>

#include "backend/amx/vectors.h"
#include "base/integers.h"

namespace collage::amx {
namespace {

int64_t volume(const Spatial& s) { return s[0] * s[1] * s[2]; }

/// Of a tap along one dimension: the phase it reads and how far ahead.
struct Reach {
  int64_t phase, ahead;
};
Reach reach(const Extents& c, size_t d, int64_t tap) {
  const int64_t at = tap * c.dilation[d];
  return {at % c.stride[d], at / c.stride[d]};
}

template <typename Visit>
void for_each_tap(const Extents& c, Visit visit) {
  for (int64_t z = 0; z < c.kernel[0]; ++z)
    for (int64_t y = 0; y < c.kernel[1]; ++y)
      for (int64_t x = 0; x < c.kernel[2]; ++x)
        visit(std::array{reach(c, 0, z), reach(c, 1, y), reach(c, 2, x)});
}

COLLAGE_AMX inline __m512 widened(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// The parts of 32 numbers, one after the other.
COLLAGE_AMX inline void split(__m512 low, __m512 high, int parts, uint16_t* to) {
  for (int part = 0;; ++part) {
    const __m256i a = (__m256i)_mm512_cvtneps_pbh(low), b = (__m256i)_mm512_cvtneps_pbh(high);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + part * kTileDepth), a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + part * kTileDepth + 16), b);
    if (part + 1 == parts) return;
    low = _mm512_sub_ps(low, widened(a));
    high = _mm512_sub_ps(high, widened(b));
  }
}

/// `count` pixels of up to 32 channels, whose halves lie at `low` and `high` (null: none there),
/// each with its number of channels; `stride` elements apart.
struct Source {
  const float *low, *high;
  int64_t stride;
  __mmask16 low_mask, high_mask;
};
COLLAGE_AMX void copy_pixels(const Source& source, int64_t count, int parts, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i, to += parts * kTileDepth)
    split(_mm512_maskz_loadu_ps(source.low_mask, source.low + i * source.stride),
          _mm512_maskz_loadu_ps(source.high_mask, source.high + i * source.stride), parts, to);
}

Source source_of(const Extents& c, const float* image, int64_t number, int64_t pixel,
                 int64_t block) {
  constexpr int64_t kBlock = 16;
  const int64_t channel = block * kTileDepth, left = c.in_channels - channel;
  if (c.channels_last) {
    const float* at = image + (number * c.pixels_in() + pixel) * c.in_channels + channel;
    return {at, at + kBlock, c.in_channels * c.stride[2], mask_of(left), mask_of(left - kBlock)};
  }
  // The padding of blocked channels is zero.
  const int64_t blocks = ceil_div(c.in_channels, kBlock), plane = c.pixels_in() * kBlock;
  const float* at = image + (number * blocks + block * 2) * plane + pixel * kBlock;
  return {at, at + plane, kBlock * c.stride[2], mask_of(16), mask_of(left > kBlock ? 16 : 0)};
}

}  // namespace

Geometry plan_geometry(const Extents& c) {
  Geometry g;
  Spatial furthest{0, 0, 0};
  for_each_tap(c, [&](const std::array<Reach, 3>& tap) {
    const Spatial phase{tap[0].phase, tap[1].phase, tap[2].phase};
    if (std::find(g.phases.begin(), g.phases.end(), phase) == g.phases.end())
      g.phases.push_back(phase);
    for (size_t d = 0; d < 3; ++d) furthest[d] = std::max(furthest[d], tap[d].ahead);
  });
  for (size_t d = 0; d < 3; ++d) g.extent[d] = c.out[d] + furthest[d];
  const int64_t one = volume(g.extent);
  g.phase_positions = one * c.images;
  for_each_tap(c, [&](const std::array<Reach, 3>& tap) {
    const Spatial phase{tap[0].phase, tap[1].phase, tap[2].phase};
    const int64_t number = std::find(g.phases.begin(), g.phases.end(), phase) - g.phases.begin();
    const int64_t ahead = (tap[0].ahead * g.extent[1] + tap[1].ahead) * g.extent[2] + tap[2].ahead;
    g.taps.push_back({number, ahead});
    g.furthest = std::max(g.furthest, ahead);
  });

  int64_t end = -1;  // of the last tile
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t z = 0; z < c.out[0]; ++z)
      for (int64_t y = 0; y < c.out[1]; ++y)
        for (int64_t x = 0; x < c.out[2]; ++x) {
          const int64_t position = n * one + (z * g.extent[1] + y) * g.extent[2] + x;
          if (position >= end) {
            g.tile_positions.push_back(position);
            g.tile_pixels.resize(g.tile_pixels.size() + kTileRows, -1);
            end = position + kTileRows;
          }
          const int64_t pixel = ((n * c.out[0] + z) * c.out[1] + y) * c.out[2] + x;
          const size_t row = g.tile_pixels.size() - static_cast<size_t>(end - position);
          g.tile_pixels[row] = static_cast<int32_t>(pixel);
        }
  return g;
}

std::vector<int32_t> row_offsets(const Extents& c, const Geometry& g, int64_t out_channels) {
  const int64_t channel_block = c.channels_last ? out_channels : kTileColumns;
  const int64_t blocks = c.channels_last ? 1 : ceil_div(out_channels, kTileColumns);
  std::vector<int32_t> offsets;
  for (const int64_t pixel : g.tile_pixels) {
    // Images lie `blocks` planes apart.
    const int64_t number = pixel / c.pixels_out(), rest = pixel % c.pixels_out();
    offsets.push_back(pixel < 0 ? -1
                                : static_cast<int32_t>((number * blocks * c.pixels_out() + rest) *
                                                       channel_block));
  }
  return offsets;
}

int64_t depth_blocks(const Extents& c) { return ceil_div(c.in_channels, kTileDepth); }

int64_t copy_bytes(const Extents& c, int64_t positions, int parts) {
  return depth_blocks(c) * positions * parts * kTileDepth * 2;
}

void copy_image(const Extents& c, const Geometry& g, int parts, const float* image,
                size_t phase_index, int64_t begin, int64_t end, int64_t pitch, uint16_t* copy) {
  const int64_t row = parts * kTileDepth;  // elements
  const int64_t blocks = depth_blocks(c);
  const Spatial& phase = g.phases[phase_index];
  end = std::min(end, g.phase_positions);  // what lies beyond belongs to no result
  for (int64_t p = begin; p < end;) {
    int64_t rest = p;
    const int64_t x = rest % g.extent[2];
    rest /= g.extent[2];
    const int64_t y = rest % g.extent[1];
    rest /= g.extent[1];
    const int64_t z = rest % g.extent[0];
    rest /= g.extent[0];
    const int64_t number = rest;
    const int64_t count = std::min(end - p, g.extent[2] - x);
    const auto source_at = [&](size_t d, int64_t at) {
      return at * c.stride[d] + phase[d] - c.pad[d];
    };
    const int64_t from_z = source_at(0, z), from_y = source_at(1, y);
    // The positions [first, last) of this line lie inside the image.
    int64_t first = x, last = x;
    if (from_z >= 0 && from_z < c.in[0] && from_y >= 0 && from_y < c.in[1]) {
      while (first < x + count && source_at(2, first) < 0) ++first;
      last = first;
      if (source_at(2, first) < c.in[2])
        last = std::min(x + count, first + ceil_div(c.in[2] - source_at(2, first), c.stride[2]));
    }
    for (int64_t b = 0; b < blocks; ++b) {
      uint16_t* line = copy + (b * pitch + p - begin - x) * row;
      std::fill(line + x * row, line + first * row, uint16_t{0});
      if (last > first)
        copy_pixels(source_of(c, image, number,
                              (from_z * c.in[1] + from_y) * c.in[2] + source_at(2, first), b),
                    last - first, parts, line + first * row);
      std::fill(line + std::max(first, last) * row, line + (x + count) * row, uint16_t{0});
    }
    p += count;
  }
}

}  // namespace collage::amx
