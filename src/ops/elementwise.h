// Loops over elements with numpy's broadcasting: out[i] = f(a[i]), f(a[i], b[i]) or f(a[i], b[i],
// c[i]). Large loops use the OpenMP team. Of broadcasting, only the innermost loops are
// compiled for each operator and type.
#pragma once

#include <span>

#include "ops/strided.h"
#include "ops/type_rules.h"

namespace collage {

// Computes a part of a row of the output from as many elements of each operand, all side by side.
using RowFunction = void (*)(const void* const* operands, void* out, int64_t count);

// Calls `body` for all parts of an output that the operands broadcast to.
void map_rows(std::span<const Tensor* const> operands, Tensor& out, RowFunction body);

template <typename In, typename Out, typename F>
void map_elements(const Tensor& in, Tensor& out, F f) {
  const In* x = in.data<In>();
  Out* y = out.data<Out>();
  const int64_t n = in.size();
#pragma omp parallel for simd schedule(static) if (n > 8192)
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

// Returns a vector along data's axis "axis" as a tensor that broadcasts over data.
inline Tensor along_axis(const Tensor& data, const Tensor& vector, const Attrs& attrs) {
  const int64_t axis = normal_axis(attrs.integer("axis"), data.rank());
  Shape shape(static_cast<size_t>(data.rank() - axis), 1);
  shape[0] = vector.size();
  return vector.reshaped(shape);
}

// F holds nothing.
template <typename In, typename Out, typename F>
void map_elements2(const Tensor& a, const Tensor& b, Tensor& out, F) {
  const Tensor* operands[] = {&a, &b};
  map_rows(operands, out, [](const void* const* from, void* to, int64_t count) {
    const In* x = static_cast<const In*>(from[0]);
    const In* y = static_cast<const In*>(from[1]);
    Out* z = static_cast<Out*>(to);
    const F f{};
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
  });
}

}  // namespace collage
