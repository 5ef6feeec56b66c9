// The weights of a contraction's branch as tiles of bfloat16 parts, in the order in which blocks of
// two columns of tiles read them: [block][pass][step][part][tile across][pair of rows][column][2].
// The steps of a pass are its taps for each block of 32 channels.
#pragma once

#include <memory>

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/parts.h"
#include "runtime/saved_kernel.h"

namespace collage::contraction {

class PackedOperand {
 public:
  static Result<PackedOperand> create(const Extents& extents, const Branch& branch,
                                      const Parts& parts);
  /// Uses the packed weights of such a branch in place, without a copy; kBadModel: the size
  /// differs.
  static Result<PackedOperand> load(const Extents& extents, int64_t out_channels,
                                    const Parts& parts, const SharedBytes& memory);

  int64_t column_blocks() const { return (column_tiles_ + 1) / 2; }
  int tiles_across(int64_t block) const { return 2 * block + 1 < column_tiles_ ? 2 : 1; }
  const uint16_t* block(int64_t index, size_t pass) const { return data_ + offset(index, pass); }
  /// Returns the first block of 32 input channels that a block of columns reads; all read as many.
  int64_t first_depth(int64_t block) const;
  int64_t depth_count() const { return depth_count_; }
  SharedBytes memory() const { return {memory_, bytes()}; }
  size_t bytes() const { return static_cast<size_t>(column_tiles_ * tile_column_) * 2; }

 private:
  int64_t offset(int64_t block, size_t pass) const {
    return block * 2 * tile_column_ + first_steps_[pass] * tiles_across(block) * step_tile_;
  }
  /// Makes one without memory.
  static PackedOperand planned(const Extents& extents, int64_t out_channels, const Parts& parts);
  /// Calls visit(place of its part 0 in `data`, weight) for all weights of a column.
  template <typename Visit>
  void for_each_weight(const Extents& extents, const Branch& branch, int64_t column, uint16_t* data,
                       Visit&& visit) const;
  void fill_parts(const Extents& extents, const Branch& branch, uint16_t* data) const;
  int64_t first_input(int64_t block) const;
  int64_t last_input(int64_t block) const;

  std::shared_ptr<const void> memory_;
  const uint16_t* data_ = nullptr;
  int64_t column_tiles_ = 0;
  int64_t group_inputs_ = 0, group_outputs_ = 0, out_channels_ = 0, depth_blocks_ = 0;
  int64_t depth_count_ = 0;
  std::vector<int64_t> first_steps_;  ///< of the passes
  int parts_ = 1;
  int64_t step_tile_ = 0;    ///< elements of all parts of one tile
  int64_t tile_column_ = 0;  ///< elements of all steps of one column of tiles
};

}  // namespace collage::contraction
