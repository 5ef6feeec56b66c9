#include "backend/contraction/kernels/packed_operand.h"

#include <algorithm>

#include "backend/contraction/kernels/geometry.h"
#include "base/integers.h"
#include "ops/half.h"
#include "runtime/huge_pages.h"
#include "runtime/shared_constants.h"

namespace collage::contraction {

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

PackedOperand PackedOperand::planned(const Extents& c, int64_t out_channels, const Parts& parts) {
  PackedOperand packed;
  packed.parts_ = parts.right;
  packed.column_tiles_ = ceil_div(out_channels, kTileColumns);
  packed.group_inputs_ = c.group_inputs();
  packed.group_outputs_ = out_channels / c.groups;
  packed.out_channels_ = out_channels;
  packed.depth_blocks_ = depth_blocks(c);
  for (int64_t block = 0; block < packed.column_blocks(); ++block)
    packed.depth_count_ =
        std::max(packed.depth_count_, packed.last_input(block) / kTileDepth -
                                          packed.first_input(block) / kTileDepth + 1);
  packed.step_tile_ = packed.parts_ * kTileElements;
  packed.tile_column_ = packed.depth_count_ * c.taps.count() * packed.step_tile_;
  for (int64_t first = 0; const Pass& pass : c.taps.passes) {
    packed.first_steps_.push_back(first);
    first += packed.depth_count_ * static_cast<int64_t>(pass.taps.size());
  }
  return packed;
}

Result<PackedOperand> PackedOperand::create(const Extents& c, const Branch& branch,
                                            const Parts& parts) {
  PackedOperand packed = planned(c, branch.out_channels, parts);
  std::shared_ptr<void> memory = TRY(allocate_on_huge_pages(packed.bytes()));
  auto* data = static_cast<uint16_t*>(memory.get());
  packed.fill_parts(c, branch, data);
  packed.memory_ = shared_constant({std::move(memory), packed.bytes()}).data;
  packed.data_ = static_cast<const uint16_t*>(packed.memory_.get());
  return packed;
}

Result<PackedOperand> PackedOperand::load(const Extents& c, int64_t out_channels,
                                          const Parts& parts, const SharedBytes& memory) {
  PackedOperand packed = planned(c, out_channels, parts);
  const int64_t elements = TRY(checked_num_elements(
      {packed.column_tiles_, packed.depth_count_, c.taps.count(), packed.step_tile_}));
  if (memory.bytes != 2 * static_cast<size_t>(elements))
    return bad_model("packed weights of {} bytes, not {} times 2", memory.bytes, elements);
  packed.memory_ = memory.data;
  packed.data_ = static_cast<const uint16_t*>(packed.memory_.get());
  return packed;
}

template <typename Visit>
void PackedOperand::for_each_weight(const Extents& c, const Branch& branch, int64_t column,
                                    uint16_t* data, Visit&& visit) const {
  const int64_t block = column / kBlockColumns, group = column / group_outputs_;
  const int64_t tile = column / kTileColumns % 2, inside = column % kTileColumns;
  const int64_t step_elements = tiles_across(block) * step_tile_, first = first_depth(block);
  const float* weights = branch.weights.data<float>() + group * branch.group_stride +
                         column % group_outputs_ * branch.column_stride;
  for (int64_t input = 0; input < group_inputs_; ++input) {
    const float* from = weights + input * branch.channel_stride;
    const int64_t channel = group * group_inputs_ + input, depth = channel % kTileDepth;
    const int64_t at = tile * kTileElements + depth / 2 * 2 * kTileColumns + inside * 2 + depth % 2;
    for (size_t pass = 0; pass < c.taps.passes.size(); ++pass) {
      const std::vector<Tap>& taps = c.taps.passes[pass].taps;
      uint16_t* to = data + offset(block, pass) + at;
      int64_t step = (channel / kTileDepth - first) * static_cast<int64_t>(taps.size());
      for (const Tap& tap : taps) {
        double weight = 0;
        for (int64_t element : tap.elements) weight += static_cast<double>(from[element]);
        visit(to + step * step_elements, weight);
        ++step;
      }
    }
  }
}

void PackedOperand::fill_parts(const Extents& c, const Branch& branch, uint16_t* data) const {
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < out_channels_; ++column) {
    const int64_t part_elements = tiles_across(column / kBlockColumns) * kTileElements;
    for_each_weight(c, branch, column, data, [&](uint16_t* to, double weight) {
      for (int part = 0; part < parts_; ++part, to += part_elements) {
        *to = float_to_bfloat16(static_cast<float>(weight));
        weight -= static_cast<double>(bfloat16_to_float(*to));
      }
    });
  }
}

}  // namespace collage::contraction
