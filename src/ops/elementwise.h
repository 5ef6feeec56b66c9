// Loops over elements with numpy's broadcasting: out[i] = f(a[i]), f(a[i], b[i]) or f(a[i], b[i],
// c[i]). Large loops use the OpenMP team.
#pragma once

#include <algorithm>
#include <array>

#include "base/integers.h"
#include "ops/strided.h"
#include "ops/type_rules.h"

namespace collage {

template <typename In, typename Out, typename F>
void map_elements(const Tensor& in, Tensor& out, F f) {
  const In* x = in.data<In>();
  Out* y = out.data<Out>();
  const int64_t n = in.size();
#pragma omp parallel for simd schedule(static) if (n > 8192)
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

// Dimensions common to an output and N operands, collapsed where every operand allows it.
template <size_t N>
struct BroadcastLoop {
  Shape extents;
  std::array<Ints, N> strides;

  BroadcastLoop(const Shape& out, const std::array<Shape, N>& operands) {
    std::array<Ints, N> full;
    for (size_t k = 0; k < N; ++k) full[k] = broadcast_strides(operands[k], out);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == 1) continue;
      bool merge = !extents.empty();
      for (size_t k = 0; k < N; ++k) merge = merge && strides[k].back() == full[k][i] * out[i];
      if (merge) {
        extents.back() *= out[i];
      } else {
        extents.push_back(out[i]);
      }
      for (size_t k = 0; k < N; ++k) {
        if (!merge) strides[k].push_back(0);
        strides[k].back() = full[k][i];
      }
    }
    if (extents.empty()) {
      extents.push_back(1);
      for (Ints& s : strides) s.push_back(0);
    }
  }

  // body(output offset, operand offsets, operand strides, count) for each innermost row. Long rows
  // are cut so that they can be shared.
  template <typename F>
  void for_each_row(F body) const {
    const int64_t total = num_elements(extents);
    if (total == 0) return;
    const size_t last = extents.size() - 1;
    const int64_t count = extents[last];
    const int64_t rows = total / count;
    constexpr int64_t kPiece = 4096;
    const int64_t pieces = ceil_div(count, kPiece);
    std::array<int64_t, N> steps;
    for (size_t k = 0; k < N; ++k) steps[k] = strides[k][last];
#pragma omp parallel for schedule(static) if (total > 8192)
    for (int64_t task = 0; task < rows * pieces; ++task) {
      const int64_t row = task / pieces, begin = task % pieces * kPiece;
      std::array<int64_t, N> offsets;
      for (size_t k = 0; k < N; ++k) offsets[k] = begin * steps[k];
      int64_t rest = row;
      for (size_t d = last; d-- > 0;) {
        int64_t index = rest % extents[d];
        rest /= extents[d];
        for (size_t k = 0; k < N; ++k) offsets[k] += index * strides[k][d];
      }
      body(row * count + begin, offsets, steps, std::min(kPiece, count - begin));
    }
  }
};

// A vector along data's axis "axis" as a tensor that broadcasts over data.
inline Tensor along_axis(const Tensor& data, const Tensor& vector, const Attrs& attrs) {
  const int64_t axis = normal_axis(attrs.integer("axis"), data.rank());
  Shape shape(static_cast<size_t>(data.rank() - axis), 1);
  shape[0] = vector.size();
  return vector.reshaped(shape);
}

template <typename In, typename Out, typename F>
void map_elements2(const Tensor& a, const Tensor& b, Tensor& out, F f) {
  BroadcastLoop<2> loop(out.shape(), {a.shape(), b.shape()});
  const In* x = a.data<In>();
  const In* y = b.data<In>();
  Out* z = out.data<Out>();
  loop.for_each_row([&](int64_t at, const auto& offsets, const auto& steps, int64_t count) {
    const In* p = x + offsets[0];
    const In* q = y + offsets[1];
    Out* r = z + at;
    const int64_t sp = steps[0], sq = steps[1];
    if (sp == 1 && sq == 1) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) r[i] = f(p[i], q[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) r[i] = f(p[i * sp], q[i * sq]);
    }
  });
}

}  // namespace collage
