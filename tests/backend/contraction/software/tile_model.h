// A model of the matrix unit's instructions, after Intel's Software Developer's Manual, volume 2:
// eight tiles for each thread, that exist while shapes are loaded. What the unit answers with a
// fault (no shapes, operands of shapes that do not fit, a tile number beyond 7) ends the program
// with a message. _tile_dpbf16ps rounds as the manual says: products are added with one rounding,
// even and odd columns of the left operand apart, to zeros; then both sums to each other and to the
// destination; denormal numbers are zeros, as operands and as results.
#pragma once

#include <cstddef>

namespace collage::software {

/// 64 bytes: all zero where no shapes are loaded.
void store_tile_shapes(void* to);
/// All tiles become zero. Shapes whose palette is 0: there are no tiles.
void load_tile_shapes(const void* from);

/// Says why and ends the program, as a fault of the processor does.
[[noreturn]] void fault(const char* why);

}  // namespace collage::software

void _tile_zero(int tile);
void _tile_loadd(int tile, const void* base, size_t stride);
void _tile_stored(int tile, void* base, size_t stride);
/// sums += left · right, of bfloat16 numbers.
void _tile_dpbf16ps(int sums, int left, int right);
