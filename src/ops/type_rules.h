// Common parts of the operators' type rules: access to argument types, axes, broadcasting and
// sizes, all with overflow-safe arithmetic. Every error is kBadModel and names the offending value.
// A shape that passed `tensor_result` has fewer than 2^62 bytes, so kernels may compute offsets in
// int64 without further checks.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace collage {

using Types = std::span<const Type>;

// The type of argument `index`, which must be a tensor.
Result<TensorType> tensor_arg(Types args, size_t index);
// The types of the fields of argument `index`, which must be a tuple of tensors with at least one.
Result<std::vector<TensorType>> tuple_arg(Types args, size_t index);
// A tensor type after checking its size.
Result<Type> tensor_result(Shape shape, DType dtype);

// `axis` counted from the start; negative values count from the end. Error outside [-rank, rank).
Result<int64_t> checked_axis(int64_t axis, int64_t rank);
// Normalises each axis as above, sorted ascending; a repeated one is an error.
Result<Ints> checked_axes(const Ints& axes, int64_t rank);
// Normalises an axis that is known to be valid (in kernels, after the type rule).
inline int64_t normal_axis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// Reads a list attribute that may be None: an integer counts as a list of one.
Result<std::optional<Ints>> optional_ints(const Attrs& attrs, std::string_view name);

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// Sums and products that report overflow. `what` is for the message.
Result<int64_t> checked_add(int64_t a, int64_t b, std::string_view what);
Result<int64_t> checked_multiply(int64_t a, int64_t b, std::string_view what);

Status require_rank(const TensorType& type, int64_t rank, std::string_view what);
Status require_min_rank(const TensorType& type, int64_t rank, std::string_view what);
Status require_float(const TensorType& type, std::string_view what);
Status require_integer(const TensorType& type, std::string_view what);
Status require_number(const TensorType& type, std::string_view what);  // float or integer
Status require_same_dtype(const TensorType& a, const TensorType& b);
Status require_shape(const TensorType& type, const Shape& shape, std::string_view what);
Status require_one_of(std::string_view value, std::initializer_list<std::string_view> allowed,
                      std::string_view what);

// Type rule of an operator whose result has the type of its first argument, a float tensor.
Result<Type> same_as_float(Types args, const Attrs& attrs);

// Type rule of an operator of data, for which `require` holds, and a vector of its dtype along its
// axis "axis"; the result has data's type.
Result<Type> infer_along_axis(Types args, const Attrs& attrs,
                              Status (*require)(const TensorType&, std::string_view),
                              std::string_view vector_name);

// Product of the extents [begin, end) of a shape.
int64_t extent_product(const Shape& shape, int64_t begin, int64_t end);

}  // namespace collage
