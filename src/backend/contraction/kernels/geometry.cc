#include "backend/contraction/kernels/geometry.h"

#include <algorithm>
#include <limits>

#include "backend/contraction/kernels/vectors.h"
#include "base/integers.h"

namespace collage::contraction {
namespace {

/// The least offset of a tap, along each dimension.
Spatial lowest(const Taps& taps) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  Spatial low{kNone, kNone, kNone};
  for (const Pass& pass : taps.passes)
    for (const Tap& tap : pass.taps)
      for (size_t d = 0; d < 3; ++d) low[d] = std::min(low[d], tap.offset[d]);
  return low;
}

/// Of a tap: the phase it reads and how far ahead.
struct Reach {
  Spatial phase, ahead;
};
Reach reach(const Tap& tap, const Spatial& low, const Spatial& stride) {
  Reach reach;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t at = tap.offset[d] - low[d];
    reach.phase[d] = at % stride[d];
    reach.ahead[d] = at / stride[d];
  }
  return reach;
}

COLLAGE_BFLOAT16 inline __m512 widened(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// The parts of 32 numbers, one after the other.
COLLAGE_BFLOAT16 inline void split(__m512 low, __m512 high, int parts, uint16_t* to) {
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
COLLAGE_VECTORS inline __m512 low_of(const Source& source, int64_t pixel) {
  return _mm512_maskz_loadu_ps(source.low_mask, source.low + pixel * source.stride);
}
COLLAGE_VECTORS inline __m512 high_of(const Source& source, int64_t pixel) {
  return _mm512_maskz_loadu_ps(source.high_mask, source.high + pixel * source.stride);
}

COLLAGE_BFLOAT16 void copy_pixels(const Source& source, int64_t count, int parts, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i, to += parts * kTileDepth)
    split(low_of(source, i), high_of(source, i), parts, to);
}

Source source_of(const Extents& c, const float* image, int64_t number, int64_t pixel,
                 int64_t block) {
  constexpr int64_t kBlock = 16;
  const int64_t channel = block * kTileDepth, left = c.in_channels - channel;
  if (c.channels_last) {
    const float* at = image + (number * c.pixels_in() + pixel) * c.in_channels + channel;
    return {at, at + kBlock, c.in_channels * c.taps.stride[2], mask_of(left),
            mask_of(left - kBlock)};
  }
  // The padding of blocked channels is zero.
  const int64_t blocks = ceil_div(c.in_channels, kBlock), plane = c.pixels_in() * kBlock;
  const float* at = image + (number * blocks + block * 2) * plane + pixel * kBlock;
  return {at, at + plane, kBlock * c.taps.stride[2], mask_of(16), mask_of(left > kBlock ? 16 : 0)};
}

/// Which of the batch's pixels the pass gives for a position of an image, or -1.
int32_t pixel_of(const Extents& c, const Pass& pass, int64_t number, const Spatial& at) {
  int64_t pixel = number;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t coordinate = at[d] * c.taps.up[d] + pass.remainder[d];
    if (coordinate >= c.out[d]) return -1;
    pixel = pixel * c.out[d] + coordinate;
  }
  return static_cast<int32_t>(pixel);
}

/// A part of one line of an image, in positions: those from `first` to before `last` lie inside the
/// image, from `pixel` on.
struct Line {
  int64_t begin, end, first, last;
  int64_t number, pixel;
};

template <typename Visit>
void for_each_line(const Extents& c, const Geometry& g, const Stretch& stretch, Visit&& visit) {
  const Spatial& phase = g.phases[stretch.phase];
  const int64_t end = std::min(stretch.end, g.phase_positions);  // beyond lies nobody's
  for (int64_t p = stretch.begin; p < end;) {
    int64_t rest = p;
    const int64_t x = rest % g.extent[2];
    rest /= g.extent[2];
    const int64_t y = rest % g.extent[1];
    rest /= g.extent[1];
    const int64_t z = rest % g.extent[0];
    const int64_t number = rest / g.extent[0];
    const int64_t count = std::min(end - p, g.extent[2] - x);
    const auto source_at = [&](size_t d, int64_t at) {
      return at * c.taps.stride[d] + phase[d] + g.low[d];
    };
    const int64_t from_z = source_at(0, z), from_y = source_at(1, y);
    int64_t first = x, last = x, pixel = 0;
    if (from_z >= 0 && from_z < c.in[0] && from_y >= 0 && from_y < c.in[1]) {
      while (first < x + count && source_at(2, first) < 0) ++first;
      last = first;
      pixel = (from_z * c.in[1] + from_y) * c.in[2] + source_at(2, first);
      if (source_at(2, first) < c.in[2])
        last =
            std::min(x + count, first + ceil_div(c.in[2] - source_at(2, first), c.taps.stride[2]));
    }
    visit(Line{p, p + count, p + first - x, p + last - x, number, pixel});
    p += count;
  }
}

}  // namespace

Geometry plan_geometry(const Extents& c) {
  Geometry g;
  g.low = lowest(c.taps);
  Spatial furthest{0, 0, 0};
  for (const Pass& pass : c.taps.passes)
    for (const Tap& tap : pass.taps) {
      const Reach r = reach(tap, g.low, c.taps.stride);
      if (std::find(g.phases.begin(), g.phases.end(), r.phase) == g.phases.end())
        g.phases.push_back(r.phase);
      for (size_t d = 0; d < 3; ++d) furthest[d] = std::max(furthest[d], r.ahead[d]);
    }
  const Spatial results = c.pass_extent();
  for (size_t d = 0; d < 3; ++d) g.extent[d] = results[d] + furthest[d];
  const int64_t one = volume(g.extent);
  g.phase_positions = one * c.images;
  for (const Pass& pass : c.taps.passes) {
    PassGeometry& to = g.passes.emplace_back();
    for (const Tap& tap : pass.taps) {
      const Reach r = reach(tap, g.low, c.taps.stride);
      const int64_t number =
          std::find(g.phases.begin(), g.phases.end(), r.phase) - g.phases.begin();
      const int64_t ahead = (r.ahead[0] * g.extent[1] + r.ahead[1]) * g.extent[2] + r.ahead[2];
      to.taps.push_back({number, ahead});
      g.furthest = std::max(g.furthest, ahead);
    }
  }

  int64_t end = -1;  // of the last tile
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t z = 0; z < results[0]; ++z)
      for (int64_t y = 0; y < results[1]; ++y)
        for (int64_t x = 0; x < results[2]; ++x) {
          const int64_t position = n * one + (z * g.extent[1] + y) * g.extent[2] + x;
          if (position >= end) {
            g.tile_positions.push_back(position);
            for (PassGeometry& pass : g.passes)
              pass.tile_pixels.resize(pass.tile_pixels.size() + static_cast<size_t>(kTileRows), -1);
            end = position + kTileRows;
          }
          for (size_t p = 0; p < g.passes.size(); ++p) {
            std::vector<int32_t>& pixels = g.passes[p].tile_pixels;
            pixels[pixels.size() - static_cast<size_t>(end - position)] =
                pixel_of(c, c.taps.passes[p], n, {z, y, x});
          }
        }
  return g;
}

std::vector<int32_t> row_offsets(const Extents& c, const PassGeometry& pass, int64_t out_channels) {
  const int64_t channel_block = c.channels_last ? out_channels : kTileColumns;
  const int64_t blocks = c.channels_last ? 1 : ceil_div(out_channels, kTileColumns);
  std::vector<int32_t> offsets;
  for (const int64_t pixel : pass.tile_pixels) {
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

void copy_image(const Extents& c, const Geometry& g, int parts, const Stretch& stretch,
                int64_t pitch, uint16_t* copy) {
  const int64_t row = parts * kTileDepth;  // elements
  for_each_line(c, g, stretch, [&](const Line& line) {
    for (int64_t b = stretch.blocks.begin; b < stretch.blocks.end; ++b) {
      uint16_t* origin = copy + (b * pitch - stretch.begin) * row;
      const auto zeros = [&](int64_t begin, int64_t end) {
        std::fill(origin + begin * row, origin + end * row, uint16_t{0});
      };
      zeros(line.begin, line.first);
      if (line.last > line.first) {
        const Source source = source_of(c, stretch.image, line.number, line.pixel, b);
        uint16_t* to = origin + line.first * row;
        copy_pixels(source, line.last - line.first, parts, to);
      }
      zeros(std::max(line.first, line.last), line.end);
    }
  });
}

}  // namespace collage::contraction
