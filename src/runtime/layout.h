// How the elements of a tensor lie in memory: a permutation of its dimensions, with some of them
// blocked.
//
// A layout is written as a tag, as oneDNN does: letters a, b, c … name the dimensions 0, 1, 2 … in
// order from outermost to innermost; an upper-case letter is a dimension that has an inner block
// too, which stands at the end as size and letter.
//   "abcd"      plain row-major (NCHW for an image)          "acdb"    channels last (NHWC)
//   "aBcd16b"   channels in blocks of 16 (nChw16c)           "ABcd16b16a"  a weight layout, two
//   blocks
// A blocked dimension is padded up to a multiple of its block; padding elements are zero in every
// stored tensor. The plain layout of any rank is the default and has the empty tag.
#pragma once

#include <collage/tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage {

class Layout {
 public:
  Layout() = default;  // plain
  static Result<Layout> parse(std::string_view tag);
  static Layout channels_blocked(int64_t rank, int64_t block);  // "aBcd16b" for rank 4
  static Layout channels_last(int64_t rank);  // "acdb" for rank 4; plain when rank < 3

  bool is_plain() const { return order_.empty(); }
  std::string tag(int64_t rank) const;  // plain of rank 4: "abcd"
  std::string to_string() const;        // "plain" or the tag
  bool fits(int64_t rank) const {
    return is_plain() || static_cast<int64_t>(order_.size()) == rank;
  }

  struct Block {
    int dim;
    int64_t size;
    bool operator==(const Block&) const = default;
  };
  const std::vector<int>& order() const { return order_; }      // outer dimensions, outermost first
  const std::vector<Block>& blocks() const { return blocks_; }  // inner blocks, outermost first

  // The shape of the physical array: outer extents (ceiling-divided by blocks), then the blocks.
  // (1,20,7,7) in aBcd16b: (1,2,7,7,16).
  Shape physical_shape(const Shape& logical) const;
  size_t physical_bytes(const Shape& logical, DType dtype) const;
  // Returns the element offset of a logical index.
  int64_t offset(const Shape& logical, const Shape& index) const;

  bool operator==(const Layout&) const = default;
  auto operator<=>(const Layout& other) const { return to_string() <=> other.to_string(); }

 private:
  std::vector<int> order_;  // empty: plain of any rank
  std::vector<Block> blocks_;
};

}  // namespace collage
