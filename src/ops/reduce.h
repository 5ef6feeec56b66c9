// The axes that a reduction removes, for type rules, kernels and backends.
#pragma once

#include "ops/type_rules.h"

namespace collage {

// Returns the reduced axes, ascending, of a call with attributes axis (None: all), and exclude.
Result<Ints> reduced_axes(const Attrs& attrs, int64_t rank);

// A tensor as kept × reduced elements through strides.
struct ReductionView {
  Shape kept, reduced;
  Ints kept_strides, reduced_strides;
};
ReductionView reduction_view(const Shape& shape, const Ints& axes);

// Returns the element offset of position `index` (row-major) among `extents` with `strides`.
inline int64_t strided_offset(int64_t index, const Shape& extents, const Ints& strides) {
  int64_t offset = 0;
  for (size_t d = extents.size(); d-- > 0;) {
    offset += index % extents[d] * strides[d];
    index /= extents[d];
  }
  return offset;
}

}  // namespace collage
