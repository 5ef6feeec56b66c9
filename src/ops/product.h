// The blocked matrix product behind convolution, dense, matmul and attention: C = A·B with all sums
// in double, so that fp32 results are rounded once. Operands are given as functions that fill dense
// panels, which lets a convolution present its input as a matrix without storing it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace collage {

struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
};

// Fills to[r * stride + c] with element (row + r, column + c) of the operand of product `batch`.
using FillPanel = std::function<void(int64_t batch, int64_t row, int64_t rows, int64_t column,
                                     int64_t columns, double* to, int64_t stride)>;
// Takes the finished block of C at (row, column): from[r * stride + c].
using StoreBlock = std::function<void(int64_t batch, int64_t row, int64_t rows, int64_t column,
                                      int64_t columns, const double* from, int64_t stride)>;

// Computes C = A·B, A is m×k, B is k×n. The OpenMP team divides the blocks; the functions may be
// called concurrently. With k = 0 all of C is zero.
void blocked_product(const Product& shape, const FillPanel& a, const FillPanel& b,
                     const StoreBlock& store);

// Fills panels of a matrix in memory whose element (r, c) of product `batch` is at data[base(batch)
// + r * row_stride + c * column_stride].
template <typename T, typename Base>
FillPanel strided_panel(const T* data, Base base, int64_t row_stride, int64_t column_stride) {
  return [=](int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns, double* to,
             int64_t stride) {
    const T* from = data + base(batch) + row * row_stride + column * column_stride;
    if (column_stride == 1) {
      for (int64_t r = 0; r < rows; ++r) {
        double* line = to + r * stride;
        const T* source = from + r * row_stride;
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) line[c] = static_cast<double>(source[c]);
      }
      return;
    }
    constexpr int64_t kStreams = 8;  // columns read side by side, so that writes fill cache lines
    for (int64_t c = 0; c < columns; c += kStreams) {
      const int64_t streams = std::min(kStreams, columns - c);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < streams; ++i)
          to[r * stride + c + i] =
              static_cast<double>(from[r * row_stride + (c + i) * column_stride]);
    }
  };
}

// Rounds blocks into a dense row-major m×n matrix per product.
template <typename T>
StoreBlock dense_store(T* data, int64_t m, int64_t n) {
  return [=](int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
             const double* from, int64_t stride) {
    T* to = data + (batch * m + row) * n + column;
    for (int64_t r = 0; r < rows; ++r) {
      T* line = to + r * n;
      const double* source = from + r * stride;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) line[c] = static_cast<T>(source[c]);
    }
  };
}

}  // namespace collage
