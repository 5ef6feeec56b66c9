#include "backend/amx/packed_operand.h"

#include <bit>

#include "backend/amx/geometry.h"
#include "base/integers.h"
#include "runtime/huge_pages.h"

namespace collage::amx {
namespace {

/// Rounded to nearest, ties to even. An infinity stays; so does NaN.
uint16_t rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | ((bits & 0xffffu) != 0 ? 0x40u : 0u));
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float widened(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace

Result<PackedOperand> PackedOperand::create(const Contraction& c, int parts) {
  PackedOperand packed;
  const int64_t taps = c.taps(), blocks = depth_blocks(c);
  packed.column_tiles_ = ceil_div(c.out_channels, kTileColumns);
  packed.tile_column_ = blocks * taps * parts * kTileElements;
  packed.memory_ = TRY(allocate_on_huge_pages(packed.bytes()));
  packed.data_ = static_cast<uint16_t*>(packed.memory_.get());
  const float* weights = c.weights.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < c.out_channels; ++column) {
    const int64_t block = column / kBlockColumns, across = packed.tiles_across(block);
    const int64_t tile = column / kTileColumns % 2, inside = column % kTileColumns;
    uint16_t* to = packed.data_ + block * 2 * packed.tile_column_;
    for (int64_t channel = 0; channel < c.in_channels; ++channel) {
      const float* from = weights + column * c.column_stride + channel * c.channel_stride;
      const int64_t depth = channel % kTileDepth;
      const int64_t at = depth / 2 * 2 * kTileColumns + inside * 2 + depth % 2;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t step = channel / kTileDepth * taps + tap;
        float rest = from[tap];
        for (int part = 0; part < parts; ++part) {
          const uint16_t bits = rounded(rest);
          to[((step * parts + part) * across + tile) * kTileElements + at] = bits;
          rest -= widened(bits);
        }
      }
    }
  }
  return packed;
}

}  // namespace collage::amx
