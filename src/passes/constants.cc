#include "passes/constants.h"

#include <cmath>

#include "base/check.h"
#include "ops/half.h"

namespace collage {

namespace {

double get(const Tensor& tensor, int64_t i) { return tensor.element_as_double(i); }
void set(Tensor& tensor, int64_t i, double value) {
  if (is_half(tensor.dtype())) {
    tensor.data<uint16_t>()[i] = float_to_half(static_cast<float>(value), tensor.dtype());
  } else if (tensor.dtype() == DType::kFloat32) {
    tensor.data<float>()[i] = static_cast<float>(value);
  } else {
    tensor.data<double>()[i] = value;
  }
}

}  // namespace

bool is_real(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

std::optional<double> scalar_value(const Expr& expr) {
  const auto* constant = as<ConstantNode>(expr);
  if (constant == nullptr || constant->value.size() != 1) return std::nullopt;
  return constant->value.element_as_double(0);
}

std::optional<double> uniform_value(const Expr& expr) {
  const auto* constant = as<ConstantNode>(expr);
  if (constant == nullptr || constant->value.size() == 0) return std::nullopt;
  double value = constant->value.element_as_double(0);
  for (int64_t i = 1; i < constant->value.size(); ++i)
    if (!(constant->value.element_as_double(i) == value)) return std::nullopt;
  return value;
}

std::optional<Tensor> along_axis(const Expr& expr, const Shape& shape, int64_t axis) {
  const auto* constant = as<ConstantNode>(expr);
  if (constant == nullptr || !is_real(constant->value.dtype())) return std::nullopt;
  const Shape& own = constant->value.shape();
  if (own.size() > shape.size()) return std::nullopt;
  size_t offset = shape.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1 && (static_cast<int64_t>(i + offset) != axis || own[i] != shape[i + offset]))
      return std::nullopt;
  int64_t extent = shape[static_cast<size_t>(axis)];
  if (constant->value.size() == extent) return constant->value.reshaped({extent});
  Tensor values = Tensor::empty(constant->value.dtype(), {extent});
  for (int64_t i = 0; i < extent; ++i) set(values, i, get(constant->value, 0));
  return values;
}

Tensor broadcastable(const Tensor& values, int64_t rank, int64_t axis) {
  Shape shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = values.size();
  return values.reshaped(std::move(shape));
}

Tensor map_constant(const Tensor& a, const std::function<double(double)>& f) {
  COLLAGE_CHECK(is_float(a.dtype()), "dtype {}", dtype_name(a.dtype()));
  Tensor result = Tensor::empty(a.dtype(), a.shape());
  for (int64_t i = 0; i < a.size(); ++i) set(result, i, f(get(a, i)));
  return result;
}

Tensor map_constants(const Tensor& a, const Tensor& b,
                     const std::function<double(double, double)>& f) {
  COLLAGE_CHECK(is_real(a.dtype()) && a.dtype() == b.dtype() && a.shape() == b.shape(),
                "constants of different types");
  Tensor result = Tensor::empty(a.dtype(), a.shape());
  for (int64_t i = 0; i < a.size(); ++i) set(result, i, f(get(a, i), get(b, i)));
  return result;
}

Tensor scale_along_axis(const Tensor& tensor, const Tensor& factor, int64_t axis) {
  Tensor result = Tensor::empty(tensor.dtype(), tensor.shape());
  int64_t inner = 1, extent = tensor.shape()[static_cast<size_t>(axis)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < tensor.shape().size(); ++i)
    inner *= tensor.shape()[i];
  COLLAGE_CHECK(factor.size() == extent, "{} factors for extent {}", factor.size(), extent);
  int64_t rows = tensor.size() == 0 ? 0 : tensor.size() / inner;
  for (int64_t row = 0; row < rows; ++row) {
    double by = get(factor, row % extent);
    for (int64_t i = row * inner; i < (row + 1) * inner; ++i) set(result, i, get(tensor, i) * by);
  }
  return result;
}

int64_t from_start(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

Ints from_start(const Ints& axes, int64_t rank) {
  Ints result;
  for (int64_t axis : axes) result.push_back(from_start(axis, rank));
  return result;
}

}  // namespace collage
