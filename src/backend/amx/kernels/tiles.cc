#include "backend/amx/kernels/tiles.h"

#include <algorithm>
#include <iterator>

#include "backend/amx/kernels/instructions.h"
#include "backend/contraction/kernels/loader_name.h"

namespace collage::amx {
namespace {

struct TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

// Tiles 0 to 3 are sums (row by row), 4 and 5 left operands, 6 and 7 right ones. Tile numbers have
// to be literals.
template <int Down, int Across>
class Unit {
 public:
  COLLAGE_AMX static void clear() {
    _tile_zero(0);
    if constexpr (Across == 2) _tile_zero(1);
    if constexpr (Down == 2) _tile_zero(2);
    if constexpr (Down == 2 && Across == 2) _tile_zero(3);
  }
  COLLAGE_AMX static void load_a(const char* a0, const char* a1, int64_t row_bytes) {
    _tile_loadd(4, a0, row_bytes);
    if constexpr (Down == 2) _tile_loadd(5, a1, row_bytes);
  }
  COLLAGE_AMX static void load_b(const uint16_t* b) {
    _tile_loadd(6, b, 64);
    if constexpr (Across == 2) _tile_loadd(7, b + kTileElements, 64);
  }
  COLLAGE_AMX static void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Across == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (Down == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (Down == 2 && Across == 2) _tile_dpbf16ps(3, 5, 7);
  }
  COLLAGE_AMX static void store(float* c) {
    _tile_stored(0, c, kRowBytes);
    if constexpr (Across == 2) _tile_stored(1, c + kTileColumns, kRowBytes);
    if constexpr (Down == 2) _tile_stored(2, c + kLower, kRowBytes);
    if constexpr (Down == 2 && Across == 2) _tile_stored(3, c + kLower + kTileColumns, kRowBytes);
  }

 private:
  static constexpr int64_t kRowBytes = kBlockColumns * 4, kLower = kTileRows * kBlockColumns;
};

template <int Down, int Across, int Left, int Right>
COLLAGE_AMX void multiply_tiles(const Block& block) {
  using U = Unit<Down, Across>;
  constexpr int64_t kPart = Across * kTileElements;
  U::clear();
  const uint16_t* b = block.b;
  const char* next = block.next;
  for (int64_t s = 0; s < block.step_count; ++s, b += Right * kPart) {
    const char* a0 = reinterpret_cast<const char*>(block.a[0]) + block.steps[s];
    const char* a1 = reinterpret_cast<const char*>(block.a[Down - 1]) + block.steps[s];
    for (int64_t line = 0; line < block.next_lines; ++line, next += 64)
      _mm_prefetch(next, _MM_HINT_T1);
    // Part j of B meets parts i of A with i + j < Right; the order keeps what is loaded.
    U::load_b(b);
    if constexpr (Left == 3) {
      U::load_a(a0 + 128, a1 + 128, block.a_row_bytes);
      U::multiply();
    }
    if constexpr (Left >= 2) {
      U::load_a(a0 + 64, a1 + 64, block.a_row_bytes);
      U::multiply();
      if constexpr (Left == 3) {
        U::load_b(b + kPart);
        U::multiply();
        U::load_b(b);
      }
    }
    U::load_a(a0, a1, block.a_row_bytes);
    U::multiply();
    for (int j = 1; j < Right; ++j) {
      U::load_b(b + j * kPart);
      U::multiply();
    }
  }
  U::store(block.c);
}

template <int Left, int Right>
void multiply_parts(const Block& block, int tiles_down, int tiles_across) {
  if (tiles_down == 2) {
    tiles_across == 2 ? multiply_tiles<2, 2, Left, Right>(block)
                      : multiply_tiles<2, 1, Left, Right>(block);
  } else {
    tiles_across == 2 ? multiply_tiles<1, 2, Left, Right>(block)
                      : multiply_tiles<1, 1, Left, Right>(block);
  }
}

class TileMicroKernel : public contraction::MicroKernel {
 public:
  const char* loader() const override { return COLLAGE_NAME_OF(amx) ".contraction"; }
  bool multiplies(const Parts& parts) const override {
    return std::find(std::begin(kAllParts), std::end(kAllParts), parts) != std::end(kAllParts);
  }
  void with_registers(const std::function<void()>& products) const override {
    const TileScope scope;
    products();
  }
  void multiply(const Block& block, Parts parts, int tiles_down, int tiles_across) const override {
    multiply_block(block, tiles_down, tiles_across, parts);
  }
};

}  // namespace

COLLAGE_AMX TileScope::TileScope() {
  TileShapes shapes;
  for (int t = 0; t < 8; ++t) {
    shapes.column_bytes[t] = 64;
    shapes.rows[t] = kTileRows;
  }
  store_tile_shapes(before_);
  load_tile_shapes(shapes);
}

COLLAGE_AMX TileScope::~TileScope() { load_tile_shapes(before_); }

void multiply_block(const Block& block, int tiles_down, int tiles_across, Parts parts) {
  __asm__ volatile("" ::: "memory");  // what was written is there before the tiles are loaded
  if (parts == Parts{1, 1}) multiply_parts<1, 1>(block, tiles_down, tiles_across);
  if (parts == Parts{1, 2}) multiply_parts<1, 2>(block, tiles_down, tiles_across);
  if (parts == Parts{2, 2}) multiply_parts<2, 2>(block, tiles_down, tiles_across);
  if (parts == Parts{3, 3}) multiply_parts<3, 3>(block, tiles_down, tiles_across);
}

const contraction::MicroKernel& tile_micro_kernel() {
  static const TileMicroKernel instance;
  return instance;
}

}  // namespace collage::amx
