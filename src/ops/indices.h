// Reads and checks index tensors, for operators that read and write by index.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/expr.h"

namespace collage {

// Returns the indices in row-major order; negative ones count from the end. An index outside
// [-extent, extent) is an error.
Result<Ints> read_indices(const Tensor& indices, int64_t extent);

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

}  // namespace collage
