// Reads transposes, slices, splits and reshapes of a tensor as strides, without moving
// elements.
#pragma once

#include <functional>

#include "base/result.h"
#include "ir/expr.h"

namespace collage::amx {

/// Elements of `source`, one stride for each dimension of the expression that was read.
struct StridedView {
  Expr source;
  int64_t offset = 0;
  Ints strides;
};

/// Follows the expression, a tensor, up to one that `is_source` accepts; or names the operator that
/// moves elements in a way that strides do not describe.
Result<StridedView> read_strided(const Expr& expr,
                                 const std::function<bool(const Expr&)>& is_source);

}  // namespace collage::amx
