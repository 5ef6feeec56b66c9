// Reads and checks index tensors, for operators that read and write by index.
#pragma once

#include <collage/tensor.h>

#include <algorithm>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/expr.h"

namespace collage {

// Returns the indices as int64, none of them negative: those count from the end. An index outside
// [-extent, extent) is an error.
Result<Tensor> read_indices(const Tensor& indices, int64_t extent);

// The places of an array that indices along one of its axes name. They lie in lines along the axis,
// one for each place along the other axes:
//
//   entry e of line l   is entry of[l] + e * step of the indices (and what else has their shape),
//                       and names, if its index is i, element to[l] + i * stride of the array
struct IndexedLines {
  IndexedLines(const Shape& array, const Shape& indices, size_t axis);

  Ints of, to;
  int64_t length, step, stride;

  // Calls visit(entry, element) for each entry: of one line in order, unless lines may be divided
  // into parts.
  template <typename Visit>
  void for_each(const int64_t* indices, const Visit& visit, int64_t parts = 1) const;
};

// Indices whose last dimension is a tuple that names a slice of data (after `batch` dimensions).
struct IndexTuples {
  Ints offsets;   // element offset of each slice within its batch
  int64_t slice;  // elements of a slice
};
Result<IndexTuples> read_index_tuples(const Tensor& indices, const Shape& data, int64_t batch);

// Follows operators that pass integers on unchanged, in order, to their origin.
const ExprNode* index_origin(const Expr& expr);

// Returns the extents that the entries of the call's index argument must fit, in turn; empty if the
// operator takes no indices.
Ints index_extents(const CallNode& call);

template <typename Visit>
void IndexedLines::for_each(const int64_t* indices, const Visit& visit, int64_t parts) const {
  const auto lines = static_cast<int64_t>(of.size());
  // Neighbours in memory one after the other: a line, or what lines beside one another have.
  const int64_t groups = step == 1 ? lines : lines >= 256 ? 16 : lines >= 32 ? 4 : 1;
  parts = std::min(parts, length);
#pragma omp parallel for schedule(static) if (lines * length > 8192)
  for (int64_t task = 0; task < groups * parts; ++task) {
    const int64_t part = task % parts, group = task / parts;
    for (int64_t e = length * part / parts; e < length * (part + 1) / parts; ++e)
      for (int64_t l = lines * group / groups; l < lines * (group + 1) / groups; ++l) {
        const int64_t entry = of[static_cast<size_t>(l)] + e * step;
        visit(entry, to[static_cast<size_t>(l)] + indices[entry] * stride);
      }
  }
}

}  // namespace collage
