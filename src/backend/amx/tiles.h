// The processor's matrix unit (Intel AMX): eight registers of 16 rows of 64 bytes ("tiles"), and an
// instruction that adds the product of a 16x32 and a 32x16 matrix of bfloat16 to a 16x16 matrix of
// float32.
//
// A float32 is the sum of two bfloat16 numbers up to 2^-18 of itself, or of three exactly. So a
// product of float32 matrices is the sum of the products of their parts; those of which the result
// does not see the last digits are left out (G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the
// bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", ARITH 2019):
//
//   parts 1 and 1: hi·hi                             errs by 2^-8 a term: bfloat16
//   parts 1 and 2: hi·hi + hi·lo                      by 2^-9: only the left operand is rounded
//   parts 2 and 2: hi·hi + hi·lo + lo·hi              by 2^-17
//   parts 3 and 3: the six of parts i, j, i+j < 3      as float32 does
//
// Exponents are float32's. An infinite operand gives NaN where float32 gives infinity.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace collage::amx {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;  ///< of the right operand and of the result
constexpr int64_t kTileDepth = 32;    ///< columns of the left operand, rows of the right one
constexpr int64_t kTileElements = kTileRows * kTileDepth;  ///< bfloat16 numbers of an operand
/// Into how many parts the operands of a product are cut.
struct Parts {
  int left = 2, right = 2;
  /// Of one part each: 16-bit integers (dot_products.h) instead of bfloat16.
  bool integers = false;
  /// Of which weights have up to two bits less, so that sums need not go to float32 as often.
  bool coarse = false;

  int products() const { return left < right ? left * right : left * (left + 1) / 2; }
  /// By the number of products.
  const char* name() const;
  bool operator==(const Parts&) const = default;
};
/// Those that the matrix unit computes.
constexpr Parts kAllParts[] = {{1, 1}, {1, 2}, {2, 2}, {3, 3}};
/// What the vector unit computes.
constexpr Parts kAllIntegers[] = {{1, 1, true}, {1, 1, true, true}};

/// Whether this processor has the unit and the system lets this process use it.
Status matrix_unit();

/// The calling thread's tiles, all full size, while it lives; before and after they are as others
/// (oneDNN) left them.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  alignas(64) uint8_t before_[64];
};

/// One block of a result: up to two tiles down and two across.
struct Block {
  const uint16_t* a[2];  ///< the first row of each tile of rows
  int64_t a_row_bytes;   ///< from row to row; the parts of a row lie side by side, 64 bytes each
  const int32_t* steps;  ///< bytes from a[i] to what each step reads
  int64_t step_count;
  const uint16_t* b;  ///< for each step: the tiles across of part 0, of part 1, ...
  float* c;           ///< 32 rows of 32 elements: overwritten
  /// What is wanted next: so many lines (64 bytes) of it are fetched in each step, into the core's
  /// larger cache.
  const char* next = nullptr;
  int64_t next_lines = 0;
};

/// Of a Block's result: rows, and elements in each.
constexpr int64_t kBlockRows = 2 * kTileRows, kBlockColumns = 2 * kTileColumns;

/// c = A · B. Within a TileScope.
void multiply_block(const Block& block, int tiles_down, int tiles_across, Parts parts);

}  // namespace collage::amx
