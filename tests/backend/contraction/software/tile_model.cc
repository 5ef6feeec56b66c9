#include "backend/contraction/software/tile_model.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/contraction/software/vector_model.h"

namespace collage::software {
namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Shapes) == 64);

struct Tile {
  uint8_t bytes[kMostRows][kMostBytes];
};

struct Unit {
  Shapes shapes{};
  alignas(64) Tile tiles[kTiles]{};
};
thread_local Unit unit;

Tile& tile_of(int number) {
  if (unit.shapes.palette == 0) fault("a tile is used while no shapes are loaded");
  if (number < 0 || number >= kTiles) fault("there are tiles 0 to 7");
  if (unit.shapes.rows[number] == 0) fault("a tile without rows is used");
  return unit.tiles[number];
}
int rows_of(int tile) { return unit.shapes.rows[tile]; }
int row_bytes_of(int tile) { return unit.shapes.row_bytes[tile]; }

Floats row_of(const Tile& tile, int row) { return load<Floats>(tile.bytes[row]); }

constexpr float kLeastNormal = 0x1p-126f;

Floats flushed(Floats x) { return magnitude(x) < kLeastNormal ? with_sign_of(Floats{}, x) : x; }
float flushed(float x) { return std::abs(x) < kLeastNormal ? std::copysign(0.0f, x) : x; }

/// What is no zero, and so large or small that products may be denormal or overflow.
Integers is_wild(Floats x) {
  const Floats size = magnitude(x);
  return ~((size == 0.0f) | ((size >= 0x1p-50f) & (size <= 0x1p60f)));
}

/// A tile's bfloat16 numbers of even and of odd columns, with denormal ones as zeros.
struct Operand {
  Floats even[kMostRows], odd[kMostRows];
  /// Of each row, and of all: none is wild, so products are exact before they are added, and no
  /// sum is denormal or infinite.
  bool tame_row[kMostRows], tame = true;

  Operand(const Tile& tile, int rows) {
    for (int r = 0; r < rows; ++r) {
      const auto bits = (Words)row_of(tile, r);
      even[r] = flushed((Floats)(bits << 16));
      odd[r] = flushed((Floats)(bits & 0xffff0000u));
      tame_row[r] = !any(is_wild(even[r]) | is_wild(odd[r]));
      tame = tame && tame_row[r];
    }
  }
};

/// x * y + sum with one rounding, denormal results as zeros. A product of two bfloat16 numbers has
/// 16 digits, so float32 holds it unless it is too large or too small.
float add_product(float sum, float x, float y) {
  const float product = x * y, size = std::abs(product);
  const bool exact =
      (size >= kLeastNormal && size <= 0x1p127f) || x == 0 || y == 0 || std::isnan(product);
  return flushed(exact ? sum + product : std::fma(x, y, sum));
}

}  // namespace

void fault(const char* why) {
  std::fprintf(stderr, "software model of the instructions: %s\n", why);
  std::abort();
}

void store_tile_shapes(void* to) { std::memcpy(to, &unit.shapes, sizeof unit.shapes); }

void load_tile_shapes(const void* from) {
  Shapes shapes;
  std::memcpy(&shapes, from, sizeof shapes);
  if (shapes.palette > 1) fault("an unknown palette");
  if (shapes.palette == 0) shapes = {};
  for (int t = 0; t < 16; ++t) {
    const bool none = t >= kTiles && (shapes.rows[t] != 0 || shapes.row_bytes[t] != 0);
    const bool too_large = shapes.rows[t] > kMostRows || shapes.row_bytes[t] > kMostBytes;
    const bool half = (shapes.rows[t] == 0) != (shapes.row_bytes[t] == 0);
    if (none || too_large || half) fault("shapes of tiles that there are not");
  }
  unit = Unit{};
  unit.shapes = shapes;
}

}  // namespace collage::software

using namespace collage::software;

void _tile_zero(int tile) { tile_of(tile) = {}; }

void _tile_loadd(int tile, const void* base, size_t stride) {
  Tile& to = tile_of(tile);
  to = {};
  for (int r = 0; r < rows_of(tile); ++r)
    std::memcpy(to.bytes[r], static_cast<const char*>(base) + static_cast<size_t>(r) * stride,
                static_cast<size_t>(row_bytes_of(tile)));
}

void _tile_stored(int tile, void* base, size_t stride) {
  const Tile& from = tile_of(tile);
  for (int r = 0; r < rows_of(tile); ++r)
    std::memcpy(static_cast<char*>(base) + static_cast<size_t>(r) * stride, from.bytes[r],
                static_cast<size_t>(row_bytes_of(tile)));
}

void _tile_dpbf16ps(int sums, int left, int right) {
  Tile& c = tile_of(sums);
  const Tile &a = tile_of(left), &b = tile_of(right);
  const int pairs = row_bytes_of(left) / 4;  // of columns of a, beside rows of b
  if (sums == left || sums == right || left == right) fault("a tile is used twice in a product");
  if (rows_of(sums) != rows_of(left) || row_bytes_of(sums) != row_bytes_of(right) ||
      rows_of(right) != pairs || row_bytes_of(left) % 4 != 0 || row_bytes_of(sums) % 4 != 0)
    fault("operands of a product whose shapes do not fit");
  const Operand x(a, rows_of(left)), y(b, pairs);
  for (int m = 0; m < rows_of(sums); ++m) {
    const bool tame = x.tame_row[m] && y.tame;
    Floats even{}, odd{};
    for (int k = 0; k < pairs; ++k) {
      const float x_even = x.even[m][k], x_odd = x.odd[m][k];
      if (tame) {
        even += x_even * y.even[k];
        odd += x_odd * y.odd[k];
        continue;
      }
      for (int n = 0; n < 16; ++n) {
        even[n] = add_product(even[n], x_even, y.even[k][n]);
        odd[n] = add_product(odd[n], x_odd, y.odd[k][n]);
      }
    }
    const Floats sum = flushed(flushed(row_of(c, m)) + flushed(even + odd));
    std::memcpy(c.bytes[m], &sum, static_cast<size_t>(row_bytes_of(sums)));
  }
}
