#include "ops/product.h"

#include <algorithm>
#include <memory>

#include "base/integers.h"

namespace collage {

namespace {

// A task computes up to kRowPanels · kRows rows and kColumns columns of C, kDepth terms at a time:
// a panel of A and one of B lie in the second-level cache, a slab of B and some rows of A in the
// first.
constexpr int64_t kRows = 96, kRowPanels = 2, kColumns = 256, kDepth = 128;
constexpr int64_t kSlab = 16;               // columns of B that lie side by side
constexpr int64_t kStrideOfA = kDepth + 8;  // rows that are read together begin in other sets
constexpr int64_t kFilledRows = 16;         // of B, before they are cut into slabs
// Small products are cut into smaller blocks until there are that many.
constexpr int64_t kEnoughTasks = 8, kLeastRows = 48, kLeastColumns = 64;

template <int64_t bytes>
struct VectorOf {
  typedef double Type __attribute__((vector_size(bytes), aligned(8), may_alias));
};

// c[rows × 2 vectors] += a[rows × depth] · b[depth × 2 vectors]: the registers hold the sums.
template <int64_t bytes, int64_t rows>
[[gnu::always_inline]] inline void multiply_tile(int64_t depth, const double* a, const double* b,
                                                 double* c) {
  using Vector = typename VectorOf<bytes>::Type;
  constexpr int64_t kLanes = bytes / sizeof(double);
  Vector sums[rows][2];
#pragma GCC unroll 12
  for (int64_t r = 0; r < rows; ++r) {
    sums[r][0] = *reinterpret_cast<const Vector*>(c + r * kColumns);
    sums[r][1] = *reinterpret_cast<const Vector*>(c + r * kColumns + kLanes);
  }
  for (int64_t p = 0; p < depth; ++p) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b + p * kSlab);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + p * kSlab + kLanes);
#pragma GCC unroll 12
    for (int64_t r = 0; r < rows; ++r) {
      sums[r][0] += a[r * kStrideOfA + p] * b0;
      sums[r][1] += a[r * kStrideOfA + p] * b1;
    }
  }
#pragma GCC unroll 12
  for (int64_t r = 0; r < rows; ++r) {
    *reinterpret_cast<Vector*>(c + r * kColumns) = sums[r][0];
    *reinterpret_cast<Vector*>(c + r * kColumns + kLanes) = sums[r][1];
  }
}

struct Slab {
  int64_t rows, columns, depth;
  const double *a, *b;
  double* c;
};

template <int64_t bytes, int64_t rows>
[[gnu::always_inline]] inline void multiply_rows(const Slab& s, int64_t& row) {
  constexpr int64_t kTileColumns = 2 * bytes / sizeof(double);
  for (; row + rows <= s.rows; row += rows)
    for (int64_t column = 0; column < s.columns; column += kTileColumns)
      multiply_tile<bytes, rows>(s.depth, s.a + row * kStrideOfA, s.b + column,
                                 s.c + row * kColumns + column);
}

template <int64_t bytes, int64_t rows>
[[gnu::always_inline]] inline void multiply_slab_by(const Slab& s) {
  int64_t row = 0;
  multiply_rows<bytes, rows>(s, row);
  multiply_rows<bytes, 2>(s, row);
  multiply_rows<bytes, 1>(s, row);
}

// The instruction set is chosen when the program starts; vectors wider than its registers would be
// taken apart through memory. Sanitizers do not survive the resolver.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target("avx512f"))) void multiply_slab(const Slab& slab) {
  multiply_slab_by<64, 12>(slab);
}
__attribute__((target("avx2,fma"))) void multiply_slab(const Slab& slab) {
  multiply_slab_by<32, 6>(slab);
}
__attribute__((target("default")))
#endif
void multiply_slab(const Slab& slab) {
  multiply_slab_by<16, 4>(slab);
}

struct Panels {
  alignas(64) double a[kRows * kStrideOfA];
  alignas(64) double b[kColumns * kDepth];  // slabs: [column / kSlab][p][column % kSlab]
  alignas(64) double filled[kFilledRows * kColumns];
  alignas(64) double c[kRowPanels * kRows * kColumns];
};

// Kept for the life of the thread: small products are many.
Panels* thread_panels() {
  thread_local auto panels = std::make_unique<Panels>();  // zeroed
  return panels.get();
}

struct PartOfB {
  int64_t batch, row, rows, column, columns;
};

// Fills the slabs with that part of B. What lies beyond `columns` is stale and only reaches sums
// that are not stored.
void fill_slabs(const FillPanel& b, const PartOfB& part, Panels& panels) {
  for (int64_t row = 0; row < part.rows; row += kFilledRows) {
    const int64_t rows = std::min(kFilledRows, part.rows - row);
    b(part.batch, part.row + row, rows, part.column, part.columns, panels.filled, kColumns);
    for (int64_t c = 0; c < part.columns; c += kSlab)
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(panels.filled + r * kColumns + c, kSlab,
                    panels.b + c * kDepth + (row + r) * kSlab);
  }
}

}  // namespace

void blocked_product(const Product& shape, const FillPanel& a, const FillPanel& b,
                     const StoreBlock& store) {
  int64_t most_rows = kRowPanels * kRows, most_columns = kColumns;
  const auto count = [&] {
    return shape.batch * ceil_div(shape.m, most_rows) * ceil_div(shape.n, most_columns);
  };
  while (count() < kEnoughTasks && most_columns > kLeastColumns) most_columns /= 2;
  while (count() < kEnoughTasks && most_rows > kLeastRows) most_rows /= 2;
  const int64_t tasks = count();
  const int64_t row_blocks = ceil_div(shape.m, most_rows);
  const int64_t column_blocks = ceil_div(shape.n, most_columns);
  const bool shared = tasks > 1 && shape.m * shape.n * shape.batch * (shape.k + 8) > 65536;
#pragma omp parallel if (shared)
  {
    Panels& panels = *thread_panels();
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; ++task) {
      const int64_t batch = task / (row_blocks * column_blocks);
      const int64_t column = task / row_blocks % column_blocks * most_columns;
      const int64_t row = task % row_blocks * most_rows;
      const int64_t rows = std::min(most_rows, shape.m - row);
      const int64_t columns = std::min(most_columns, shape.n - column);
      std::fill(panels.c, panels.c + rows * kColumns, 0.0);
      for (int64_t p = 0; p < shape.k; p += kDepth) {
        const int64_t depth = std::min(kDepth, shape.k - p);
        fill_slabs(b, {batch, p, depth, column, columns}, panels);
        for (int64_t r = 0; r < rows; r += kRows) {
          const int64_t some = std::min(kRows, rows - r);
          a(batch, row + r, some, p, depth, panels.a, kStrideOfA);
          for (int64_t c = 0; c < columns; c += kSlab)
            multiply_slab({some, std::min(kSlab, columns - c), depth, panels.a,
                           panels.b + c * kDepth, panels.c + r * kColumns + c});
        }
      }
      store(batch, row, rows, column, columns, panels.c, kColumns);
    }
  }
}

}  // namespace collage
