// Weights of 7 bits in the order in which two groups of four products can be added up in 16 bits.
//
// vpmaddubsw multiplies four uint8 by four int8 a lane and adds up neighbours in 16 bits. Two of
// its results can be added in 16 bits too, before vpmaddwd widens them, where no such sum leaves
// them: where the weights of either sign among the four behind it add up to 128 at most. Few sums
// of trained weights do, but some; so groups are paired such that none is too large. Each panel of
// columns has pairs of its own, since nearly all pairs suit few columns.
#pragma once

#include <collage/tensor.h>

namespace collage::native {

struct QuadPairs {
  Tensor first, second;  ///< int8 [vectors, …, pairs, lanes, 4]: the weights of a pair's groups
  Tensor terms;          ///< int32 [panels, …, pairs, 2]: the first term of each
};

/// Of int8 [panels, …, groups, columns, 4], each within kLargestOf7Bits, whose columns are vectors
/// of that many lanes. A group that goes with no other is paired with zeros, so there are from half
/// as many pairs as groups to as many.
QuadPairs pair_quads(const Tensor& columns, int64_t lanes);

}  // namespace collage::native
