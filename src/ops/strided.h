// Moves elements between arrays addressed by strides, for transposes, slices, tiles, broadcasts and
// most other injective operators. Strides are in elements and may be zero or negative.
#pragma once

#include <collage/tensor.h>

#include "ir/attrs.h"

namespace collage {

// Row-major strides of a shape.
Ints dense_strides(const Shape& shape);
// Returns the strides with which a tensor of `shape` is read as one of the shape `to` it broadcasts
// to.
Ints broadcast_strides(const Shape& shape, const Shape& to);
// Returns where the operand of each product begins whose batch is broadcast so; `matrix`: the
// elements of one.
Ints batch_offsets(const Shape& operand, const Shape& batch, int64_t matrix);

// An array whose index i lies `offset` + i·`strides` elements behind `data`.
template <typename Data>
struct Strided {
  Data* data;
  int64_t offset;
  const Ints& strides;
};

// to[index] = from[index] for every index of `extents`.
void copy_strided(const Shape& extents, size_t element_bytes, const Strided<const void>& from,
                  const Strided<void>& to);

// Fills a dense tensor from a strided source.
inline void gather_strided(Tensor& to, const void* from, int64_t from_offset, const Shape& extents,
                           const Ints& from_strides) {
  copy_strided(extents, dtype_size(to.dtype()), {from, from_offset, from_strides},
               {to.raw(), 0, dense_strides(extents)});
}

}  // namespace collage
