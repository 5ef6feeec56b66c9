#include "backend/amx/packed_operand.h"

#include <algorithm>

#include "backend/amx/geometry.h"
#include "base/integers.h"
#include "ops/half.h"
#include "runtime/huge_pages.h"

namespace collage::amx {
int64_t PackedOperand::first_input(int64_t block) const {
  return block * kBlockColumns / group_outputs_ * group_inputs_;
}

int64_t PackedOperand::last_input(int64_t block) const {
  const int64_t column = std::min((block + 1) * kBlockColumns, out_channels_) - 1;
  return (column / group_outputs_ + 1) * group_inputs_ - 1;
}

int64_t PackedOperand::first_depth(int64_t block) const {
  return std::min(first_input(block) / kTileDepth, depth_blocks_ - depth_count_);
}

Result<PackedOperand> PackedOperand::create(const Extents& c, const Branch& branch, int parts) {
  PackedOperand packed;
  packed.column_tiles_ = ceil_div(branch.out_channels, kTileColumns);
  packed.group_inputs_ = c.group_inputs();
  packed.group_outputs_ = branch.out_channels / c.groups;
  packed.out_channels_ = branch.out_channels;
  packed.depth_blocks_ = depth_blocks(c);
  for (int64_t block = 0; block < packed.column_blocks(); ++block)
    packed.depth_count_ =
        std::max(packed.depth_count_, packed.last_input(block) / kTileDepth -
                                          packed.first_input(block) / kTileDepth + 1);
  packed.step_tile_ = parts * kTileElements;
  packed.tile_column_ = packed.depth_count_ * c.taps.count() * packed.step_tile_;
  for (int64_t first = 0; const Pass& pass : c.taps.passes) {
    packed.first_steps_.push_back(first);
    first += packed.depth_count_ * static_cast<int64_t>(pass.taps.size());
  }
  packed.memory_ = TRY(allocate_on_huge_pages(packed.bytes()));
  packed.data_ = static_cast<uint16_t*>(packed.memory_.get());
  const float* weights = branch.weights.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < branch.out_channels; ++column) {
    const int64_t block = column / kBlockColumns, across = packed.tiles_across(block);
    const int64_t tile = column / kTileColumns % 2, inside = column % kTileColumns;
    const int64_t group = column / packed.group_outputs_;
    const int64_t first = group * packed.group_inputs_;
    const int64_t first_depth = packed.first_depth(block);
    for (int64_t input = 0; input < packed.group_inputs_; ++input) {
      const float* from = weights + group * branch.group_stride +
                          column % packed.group_outputs_ * branch.column_stride +
                          input * branch.channel_stride;
      const int64_t channel = first + input, depth = channel % kTileDepth;
      const int64_t at = depth / 2 * 2 * kTileColumns + inside * 2 + depth % 2;
      for (size_t pass = 0; pass < c.taps.passes.size(); ++pass) {
        const std::vector<Tap>& taps = c.taps.passes[pass].taps;
        uint16_t* to = packed.data_ + packed.offset(block, pass);
        int64_t step = (channel / kTileDepth - first_depth) * static_cast<int64_t>(taps.size());
        for (const Tap& tap : taps) {
          double rest = 0;
          for (int64_t element : tap.elements) rest += static_cast<double>(from[element]);
          for (int part = 0; part < parts; ++part) {
            const uint16_t bits = float_to_bfloat16(static_cast<float>(rest));
            to[((step * parts + part) * across + tile) * kTileElements + at] = bits;
            rest -= static_cast<double>(bfloat16_to_float(bits));
          }
          ++step;
        }
      }
    }
  }
  return packed;
}

}  // namespace collage::amx
