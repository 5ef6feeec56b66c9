// Index tensors, checked: what reading and writing by index share.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/expr.h"

namespace collage {

// The indices in row-major order; negative ones counted from the end. Error when one is outside
// [-extent, extent).
Result<Ints> read_indices(const Tensor& indices, int64_t extent);

// Indices whose last dimension is a tuple that names a slice of data (after `batch` dimensions).
struct IndexTuples {
  Ints offsets;   // element offset of each slice within its batch
  int64_t slice;  // elements of a slice
};
Result<IndexTuples> read_index_tuples(const Tensor& indices, const Shape& data, int64_t batch);

// Follows operators that pass integers on unchanged, in order, to where they come from.
const ExprNode* index_origin(const Expr& expr);

// The extents that the entries of the call's index argument must fit, in turn; none where the
// operator takes no indices.
Ints index_extents(const CallNode& call);

}  // namespace collage
