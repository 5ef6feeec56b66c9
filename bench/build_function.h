// What benchmarks build their functions with.
#pragma once

#include "ir/expr.h"
#include "runtime/tensor_type.h"

namespace collage {

inline Expr filled_constant(const Shape& shape) {
  Tensor tensor = Tensor::empty(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i % 31 - 15) / 64;
  return make_constant(std::move(tensor));
}
// The arguments must fit the operator.
inline Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

}  // namespace collage
