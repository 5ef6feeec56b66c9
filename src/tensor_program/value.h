// Single values while a program is evaluated (evaluate.h), and operations on them.
#pragma once

#include <collage/tensor.h>

#include <cstdint>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Reals in one field, all else in the other.
struct Value {
  double real = 0;
  int64_t integer = 0;
};

/// Reads an element of the tensor, by its position.
Value element(const Tensor& tensor, int64_t at);
/// Writes an element; reals are rounded to the tensor's type.
Status store(Tensor& tensor, int64_t at, const Value& value);

double rounded(double value, DType dtype);
Value converted(const Value& value, DType from, DType to);

/// Applies an operation to two values, or to `a` alone; does not round.
double real_operation(TermOp op, double a, double b);
/// Applies an operation to int64. Results wrap around; a division by zero gives 0.
int64_t integer_operation(TermOp op, int64_t a, int64_t b);

/// Combines an old value with a new one.
Value combined_value(Combine combine, const Value& old, const Value& next);

}  // namespace collage::tensor_program
