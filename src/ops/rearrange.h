// Which elements strided_slice and pad select, for type rules and kernels, and for backends.
#pragma once

#include <string>

#include "ops/type_rules.h"

namespace collage {

struct SliceRange {
  int64_t axis;   // counted from the start
  int64_t begin;  // first index taken; meaningless when count is 0
  int64_t step;   // not zero, maybe negative
  int64_t count;
};

// Returns one range for each sliced axis of a strided_slice call on data of that shape. Positions
// follow Python: negative ones count from the end, those beyond an end are clamped. end = INT64_MIN
// takes all of an axis backwards.
Result<std::vector<SliceRange>> slice_ranges(const Shape& shape, const Attrs& attrs);

// Returns, for each position of an axis padded by `before` and `after` (negative: cropped), the
// source position, or -1 for the pad value. Modes as nn.pad's.
Ints pad_sources(int64_t extent, int64_t before, int64_t after, const std::string& mode);

}  // namespace collage
