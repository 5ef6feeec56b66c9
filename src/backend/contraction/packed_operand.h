// The weights of a contraction's branch as tiles of bfloat16 parts, in the order in which blocks of
// two columns of tiles read them: [block][pass][step][part][tile across][pair of rows][column][2].
// The steps of a pass are its taps for each block of 32 channels. Where products are of integers
// there is one part, of 16-bit integers.
#pragma once

#include <memory>

#include "backend/contraction/contraction.h"
#include "backend/contraction/parts.h"

namespace collage::contraction {

class PackedOperand {
 public:
  static Result<PackedOperand> create(const Extents& extents, const Branch& branch,
                                      const Parts& parts);

  int64_t column_blocks() const { return (column_tiles_ + 1) / 2; }
  int tiles_across(int64_t block) const { return 2 * block + 1 < column_tiles_ ? 2 : 1; }
  const uint16_t* block(int64_t index, size_t pass) const { return data_ + offset(index, pass); }
  /// Which blocks of 32 input channels a block of columns reads: as many everywhere.
  int64_t first_depth(int64_t block) const;
  int64_t depth_count() const { return depth_count_; }
  /// Of integers: how many steps' products add up in 32 bits, and what a unit of each column of a
  /// block stands for.
  int64_t run() const { return run_; }
  const float* factors(int64_t block) const { return factors_.data() + block * kBlockColumns; }
  size_t bytes() const { return static_cast<size_t>(column_tiles_ * tile_column_) * 2; }

 private:
  int64_t offset(int64_t block, size_t pass) const {
    return block * 2 * tile_column_ + first_steps_[pass] * tiles_across(block) * step_tile_;
  }
  /// Calls visit(pass, step of it, where its part 0 lies, weight) for all that a column has.
  template <typename Visit>
  void for_each_weight(const Extents& extents, const Branch& branch, int64_t column,
                       Visit&& visit) const;
  void fill_parts(const Extents& extents, const Branch& branch);
  void fill_integers(const Extents& extents, const Branch& branch, bool coarse);
  int64_t first_input(int64_t block) const;
  int64_t last_input(int64_t block) const;

  std::shared_ptr<void> memory_;
  uint16_t* data_ = nullptr;
  int64_t column_tiles_ = 0;
  int64_t group_inputs_ = 0, group_outputs_ = 0, out_channels_ = 0, depth_blocks_ = 0;
  int64_t depth_count_ = 0;
  std::vector<int64_t> first_steps_;  ///< of the passes
  int parts_ = 1;
  int64_t run_ = 1;
  std::vector<float> factors_;
  int64_t step_tile_ = 0;    ///< elements of all parts of one tile
  int64_t tile_column_ = 0;  ///< elements of all steps of one column of tiles
};

}  // namespace collage::contraction
