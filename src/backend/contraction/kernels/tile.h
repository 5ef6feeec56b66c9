// Tiles: the units of packed operands.
#pragma once

#include <cstdint>

namespace collage::contraction {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;  ///< of the right operand and of the result
constexpr int64_t kTileDepth = 32;    ///< columns of the left operand, rows of the right one
constexpr int64_t kTileElements = kTileRows * kTileDepth;  ///< numbers of 16 bits of an operand

/// A block of a result, two tiles down and two across: its rows, and the elements of each.
constexpr int64_t kBlockRows = 2 * kTileRows, kBlockColumns = 2 * kTileColumns;

}  // namespace collage::contraction
