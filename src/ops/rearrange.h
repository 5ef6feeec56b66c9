// The elements that a strided_slice selects, for its type rule and kernel and for backends.
#pragma once

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

}  // namespace collage
