#include "tensor_program/value.h"

#include <algorithm>
#include <cmath>

#include "ops/half.h"
#include "runtime/dispatch.h"

namespace collage::tensor_program {
namespace {

/// As integers of the type wrap around.
int64_t wrapped(int64_t value, DType dtype) {
  return dispatch_integer(
      dtype, [&]<typename T>(Tag<T>) { return static_cast<int64_t>(static_cast<T>(value)); });
}

double real_function(TermOp op, double x) {
  switch (op) {
    case TermOp::kExp:
      return std::exp(x);
    case TermOp::kExpm1:
      return std::expm1(x);
    case TermOp::kLog:
      return std::log(x);
    case TermOp::kLog1p:
      return std::log1p(x);
    case TermOp::kSqrt:
      return std::sqrt(x);
    case TermOp::kErf:
      return std::erf(x);
    case TermOp::kAbs:
      return std::abs(x);
    case TermOp::kCeil:
      return std::ceil(x);
    case TermOp::kFloor:
      return std::floor(x);
    case TermOp::kRound:
      return std::nearbyint(x);
    case TermOp::kTrunc:
      return std::trunc(x);
    case TermOp::kSin:
      return std::sin(x);
    case TermOp::kCos:
      return std::cos(x);
    case TermOp::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

/// Sums, differences and products of integers wrap around.
int64_t wrapping(TermOp op, int64_t a, int64_t b) {
  const auto u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
  const uint64_t result = op == TermOp::kAdd ? u + v : op == TermOp::kSubtract ? u - v : u * v;
  return static_cast<int64_t>(result);
}

}  // namespace

Value element(const Tensor& tensor, int64_t at) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return {static_cast<double>(tensor.data<float>()[at]), 0};
    case DType::kInt32:
      return {0, tensor.data<int32_t>()[at]};
    default:
      return is_float(tensor.dtype()) ? Value{tensor.element_as_double(at), 0}
                                      : Value{0, tensor.element_as_int64(at)};
  }
}

Status store(Tensor& tensor, int64_t at, const Value& value) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.data<float>()[at] = static_cast<float>(value.real);
      return {};
    case DType::kFloat64:
      tensor.data<double>()[at] = value.real;
      return {};
    case DType::kFloat16:
    case DType::kBFloat16:
      tensor.data<uint16_t>()[at] = float_to_half(static_cast<float>(value.real), tensor.dtype());
      return {};
    case DType::kBool:
      tensor.data<bool>()[at] = value.integer != 0;
      return {};
    default:
      dispatch_integer(tensor.dtype(), [&]<typename T>(Tag<T>) {
        tensor.data<T>()[at] = static_cast<T>(value.integer);
      });
      return {};
  }
}

double rounded(double value, DType dtype) {
  if (dtype == DType::kFloat64) return value;
  auto single = static_cast<float>(value);
  if (is_half(dtype)) single = half_to_float(float_to_half(single, dtype), dtype);
  return static_cast<double>(single);
}

// NaN where an operand is.
double larger(double a, double b) { return a < b || std::isnan(b) ? b : a; }
double smaller(double a, double b) { return b < a || std::isnan(b) ? b : a; }

double real_operation(TermOp op, double a, double b) {
  switch (op) {
    case TermOp::kAdd:
      return a + b;
    case TermOp::kSubtract:
      return a - b;
    case TermOp::kMultiply:
      return a * b;
    case TermOp::kDivide:
    case TermOp::kQuotient:
      return a / b;
    case TermOp::kMin:
      return smaller(a, b);
    case TermOp::kMax:
      return larger(a, b);
    case TermOp::kNegate:
      return -a;
    case TermOp::kPower:
      return std::pow(a, b);
    default:
      return real_function(op, a);
  }
}

int64_t integer_operation(TermOp op, int64_t a, int64_t b) {
  switch (op) {
    case TermOp::kAdd:
    case TermOp::kSubtract:
    case TermOp::kMultiply:
      return wrapping(op, a, b);
    case TermOp::kNegate:
      return wrapping(TermOp::kSubtract, 0, a);
    case TermOp::kAbs:
      return a < 0 ? wrapping(TermOp::kSubtract, 0, a) : a;
    case TermOp::kMin:
      return std::min(a, b);
    case TermOp::kMax:
      return std::max(a, b);
    case TermOp::kDivide:
      if (b == 0) return 0;
      return b == -1 ? wrapping(TermOp::kSubtract, 0, a) : floor_div(a, b);
    case TermOp::kModulo:
      return b == 0 || b == -1 ? 0 : floor_mod(a, b);
    default:
      return a;
  }
}

Value converted(const Value& value, DType from, DType to) {
  if (is_float(to)) {
    const double real = is_float(from) ? value.real : static_cast<double>(value.integer);
    return {rounded(real, to), 0};
  }
  const int64_t integer = is_float(from) ? integer_of(value.real, to) : value.integer;
  if (to == DType::kBool) return {0, integer != 0};
  return {0, wrapped(integer, to)};
}

Value combined_value(Combine combine, const Value& old, const Value& next) {
  switch (combine) {
    case Combine::kSet:
      return next;
    case Combine::kSum:
      return {old.real + next.real, wrapping(TermOp::kAdd, old.integer, next.integer)};
    case Combine::kProduct:
      return {old.real * next.real, wrapping(TermOp::kMultiply, old.integer, next.integer)};
    case Combine::kMax:
      return {larger(old.real, next.real), std::max(old.integer, next.integer)};
    case Combine::kMin:
      return {smaller(old.real, next.real), std::min(old.integer, next.integer)};
  }
  return next;
}

}  // namespace collage::tensor_program
