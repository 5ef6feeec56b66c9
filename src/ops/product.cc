#include "ops/product.h"

#include <algorithm>
#include <memory>

#include "base/integers.h"

namespace collage {

namespace {

constexpr int64_t kRows = 64, kColumns = 128, kDepth = 256;  // a block of C, and of the sums
constexpr int64_t kTileRows = 4, kTileColumns = 16;

template <int64_t bytes>
struct VectorOf {
  typedef double Type __attribute__((vector_size(bytes), aligned(8), may_alias));
};

// c[4×16] += a[4×depth] · b[depth×16], two vectors of that size at a time: eight sums, which the
// vector registers hold.
template <int64_t bytes>
[[gnu::always_inline]] inline void multiply_tile_by(int64_t depth, const double* a, const double* b,
                                                    double* c) {
  using Vector = typename VectorOf<bytes>::Type;
  constexpr int64_t kLanes = bytes / sizeof(double);
  for (int64_t column = 0; column < kTileColumns; column += 2 * kLanes) {
    Vector sums[kTileRows][2];
    for (int64_t r = 0; r < kTileRows; ++r) {
      sums[r][0] = *reinterpret_cast<const Vector*>(c + r * kColumns + column);
      sums[r][1] = *reinterpret_cast<const Vector*>(c + r * kColumns + column + kLanes);
    }
    for (int64_t p = 0; p < depth; ++p) {
      const Vector b0 = *reinterpret_cast<const Vector*>(b + p * kColumns + column);
      const Vector b1 = *reinterpret_cast<const Vector*>(b + p * kColumns + column + kLanes);
#pragma GCC unroll 4
      for (int64_t r = 0; r < kTileRows; ++r) {
        sums[r][0] += a[r * kDepth + p] * b0;
        sums[r][1] += a[r * kDepth + p] * b1;
      }
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      *reinterpret_cast<Vector*>(c + r * kColumns + column) = sums[r][0];
      *reinterpret_cast<Vector*>(c + r * kColumns + column + kLanes) = sums[r][1];
    }
  }
}

// The instruction set is chosen when the program starts; vectors wider than its registers would be
// taken apart through memory. Sanitizers do not survive the resolver.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target("avx512f"))) void multiply_tile(int64_t depth, const double* a,
                                                      const double* b, double* c) {
  multiply_tile_by<64>(depth, a, b, c);
}
__attribute__((target("avx2,fma"))) void multiply_tile(int64_t depth, const double* a,
                                                       const double* b, double* c) {
  multiply_tile_by<32>(depth, a, b, c);
}
__attribute__((target("default")))
#endif
void multiply_tile(int64_t depth, const double* a, const double* b, double* c) {
  multiply_tile_by<16>(depth, a, b, c);
}

struct Panels {
  alignas(64) double a[kRows * kDepth];
  alignas(64) double b[kDepth * kColumns];
  alignas(64) double c[kRows * kColumns];
};

// Kept for the life of the thread: small products are many.
Panels* thread_panels() {
  thread_local auto panels = std::make_unique<Panels>();  // zeroed
  return panels.get();
}

}  // namespace

void blocked_product(const Product& shape, const FillPanel& a, const FillPanel& b,
                     const StoreBlock& store) {
  const int64_t row_blocks = ceil_div(shape.m, kRows);
  const int64_t column_blocks = ceil_div(shape.n, kColumns);
  const int64_t tasks = shape.batch * row_blocks * column_blocks;
  const bool shared = tasks > 1 && shape.m * shape.n * shape.batch * (shape.k + 8) > 65536;
#pragma omp parallel if (shared)
  {
    Panels* panels = thread_panels();
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; ++task) {
      const int64_t batch = task / (row_blocks * column_blocks);
      const int64_t column = task / row_blocks % column_blocks * kColumns;
      const int64_t row = task % row_blocks * kRows;
      const int64_t rows = std::min(kRows, shape.m - row);
      const int64_t columns = std::min(kColumns, shape.n - column);
      std::fill(panels->c, panels->c + round_up(rows, kTileRows) * kColumns, 0.0);
      for (int64_t p = 0; p < shape.k; p += kDepth) {
        const int64_t depth = std::min(kDepth, shape.k - p);
        a(batch, row, rows, p, depth, panels->a, kDepth);
        b(batch, p, depth, column, columns, panels->b, kColumns);
        // What lies beyond `rows` and `columns` is stale and only reaches sums that are not stored.
        for (int64_t c = 0; c < round_up(columns, kTileColumns); c += kTileColumns)
          for (int64_t r = 0; r < round_up(rows, kTileRows); r += kTileRows)
            multiply_tile(depth, panels->a + r * kDepth, panels->b + c,
                          panels->c + r * kColumns + c);
      }
      store(batch, row, rows, column, columns, panels->c, kColumns);
    }
  }
}

}  // namespace collage
