// Single values while a program is evaluated (evaluate.h), and what operations make of them.
#pragma once

#include <collage/tensor.h>

#include <cstdint>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Reals in one, all else in the other.
struct Value {
  double real = 0;
  int64_t integer = 0;
};

/// An element of the tensor, by its position.
Value element(const Tensor& tensor, int64_t at);
/// Sets it; reals are rounded to the tensor's type.
Status store(Tensor& tensor, int64_t at, const Value& value);

double rounded(double value, DType dtype);
Value converted(const Value& value, DType from, DType to);

/// Of two values, or of `a` alone; not rounded.
double real_operation(TermOp op, double a, double b);
/// As of int64: sums, differences and products wrap around. Divided by zero is 0.
int64_t integer_operation(TermOp op, int64_t a, int64_t b);

/// What is there, combined with one more value.
Value combined_value(Combine combine, const Value& old, const Value& next);

}  // namespace collage::tensor_program
