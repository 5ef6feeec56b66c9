// The micro-kernel of a backend: multiplies packed operands block by block with the backend's own
// instructions, for the kernels of this folder.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/contraction/kernels/parts.h"
#include "backend/contraction/kernels/tile.h"

namespace collage::contraction {

/// One block of a result: up to two tiles down and two across.
struct Block {
  const uint16_t* a[2];  ///< the first row of each tile of rows
  int64_t a_row_bytes;   ///< from row to row; the parts of a row lie side by side, 64 bytes each
  const int32_t* steps;  ///< bytes from a[i] to what each step reads
  int64_t step_count;
  const uint16_t* b;  ///< for each step: the tiles across of part 0, of part 1, ...
  float* c;           ///< rows of 32 elements, tile after tile: overwritten
  /// Data needed next: each step prefetches this many lines (64 bytes) of it into the core's larger
  /// cache.
  const char* next = nullptr;
  int64_t next_lines = 0;
};

class MicroKernel {
 public:
  virtual ~MicroKernel() = default;

  /// The loader of saved kernels that use it.
  virtual const char* loader() const = 0;
  /// Returns whether operands in such parts can be multiplied.
  virtual bool multiplies(const Parts& parts) const = 0;
  /// Calls `products`; the calling thread multiplies only inside.
  virtual void with_registers(const std::function<void()>& products) const { products(); }
  /// Computes c = A · B.
  virtual void multiply(const Block& block, Parts parts, int tiles_down,
                        int tiles_across) const = 0;
};

}  // namespace collage::contraction
