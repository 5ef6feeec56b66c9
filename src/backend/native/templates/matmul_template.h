// Matrix products as a Halide pipeline: out[b…, m, n] = epilogue(sum_k A[b…, m, k] * B[b…, k, n]).
//
// The register tile is rows x vectors of 16 columns. B is read as panels of 16 columns: packed once
// by `pack_matmul_weights` when it is constant, else packed by a stage of its own (whatever its
// order in memory). A is broadcast, from a copy in blocks of 16 k where there are rows enough to
// pay for it or where it is an expression. A product with one row (matrix x vector) streams the
// panels, which are contiguous in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/native/codegen/access.h"
#include "backend/native/templates/packed_weights.h"

namespace collage::native {

inline constexpr int kPanel = 16;  ///< columns

struct MatmulShape {
  std::vector<int64_t> batch;  ///< outermost first; may be empty
  int64_t m = 1, n = 1, k = 1;

  /// Whether the bytes of B come from memory.
  bool has_heavy_b() const { return k * n * 4 > (1 << 20); }
};

struct MatmulProblem {
  MatmulShape shape;
  bool constant_b = true;   ///< B is one packed constant without batch dimensions
  bool a_is_buffer = true;  ///< A is a plain load with k innermost
};

struct MatmulSchedule {
  int m_tile = 14;  ///< rows
  int n_tile = 2;   ///< vectors of 16 columns; divides the number of panels
  int n_task = 1;   ///< n tiles of one task
  int m_task = 0;   ///< m tiles of one task; 0: all rows
  bool pack_a = true;
  int streams = 1;     ///< parts of k summed side by side: as many panels more are read at a time
  bool ahead = false;  ///< weights are read ahead (weights_ahead.h)

  std::string to_string() const;
};

/// Schedules worth measuring, most promising first.
std::vector<MatmulSchedule> matmul_schedules(const MatmulProblem& problem, int threads,
                                             bool avx512);

/// Extents, innermost first, of packed constant weights: (16, k, panels).
std::vector<int64_t> packed_matmul_extents(const MatmulShape& shape);

/// Packs B given as element (k, n) at b[k * k_stride + n * n_stride]: as it is, or rounded to
/// bfloat16 (uint16_t).
template <typename T>
PackedWeights<T> pack_matmul_weights(const MatmulShape& shape, const float* b, int64_t k_stride,
                                     int64_t n_stride);

/// The scheduled output function of dimensions (n, m, batch… innermost first). `a` and `b` take
/// (batch…, m, k) and (batch…, k, n); `weights`, floats or bfloat16 in uint16_t, are used instead
/// of `b` when B is constant.
Halide::Func build_matmul(const MatmulProblem& problem, const MatmulSchedule& schedule,
                          const Access& a, const Access& b, Halide::ImageParam weights,
                          const Epilogue& epilogue);

}  // namespace collage::native
