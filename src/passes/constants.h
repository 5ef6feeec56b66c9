// Queries of constants by passes.
#pragma once

#include <collage/tensor.h>

#include <functional>
#include <optional>

#include "ir/expr.h"

namespace collage {

// Returns the value of a constant with one element.
std::optional<double> scalar_value(const Expr& expr);
// Returns the value that all elements of a constant share (at least one element).
std::optional<double> uniform_value(const Expr& expr);

// Returns the values of a real constant that, broadcast to `shape`, varies along `axis` only, as a
// tensor of shape [shape[axis]]. None if it varies elsewhere or would enlarge `shape`.
std::optional<Tensor> along_axis(const Expr& constant, const Shape& shape, int64_t axis);
// Does the reverse: [C] as [C, 1, …, 1] so that it broadcasts along `axis` of a tensor of that
// rank.
Tensor broadcastable(const Tensor& values, int64_t rank, int64_t axis);

// Applies f to every element, or to every pair of elements of equal shapes; computes in double.
// Pairs are of float32 or float64.
Tensor map_constant(const Tensor& a, const std::function<double(double)>& f);
Tensor map_constants(const Tensor& a, const Tensor& b,
                     const std::function<double(double, double)>& f);
bool is_real(DType dtype);  // float32 or float64: what these can compute on

// Returns `tensor` with every element multiplied by factor[index along `axis`].
Tensor scale_along_axis(const Tensor& tensor, const Tensor& factor, int64_t axis);

// Axes counted from the start.
int64_t from_start(int64_t axis, int64_t rank);
Ints from_start(const Ints& axes, int64_t rank);

}  // namespace collage
