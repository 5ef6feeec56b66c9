// Limits of what a model may ask for. Models are untrusted: every count that leads to an allocation
// or a loop is compared with one of these first, and the error names the limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::frontend {

inline constexpr size_t kMaxNodes = 1'000'000;              // after functions are inlined
inline constexpr int64_t kMaxRank = 32;                     // of any tensor
inline constexpr size_t kMaxAttributeLength = 1 << 20;      // elements of a list, bytes of a string
inline constexpr int kMaxAttributes = 1024;                 // of one node
inline constexpr size_t kMaxNameLength = 65536;             // bytes of a node's or a value's name
inline constexpr int kMaxGraphDepth = 32;                   // graphs inside attributes of nodes
inline constexpr int kMaxFunctionDepth = 32;                // functions that call functions
inline constexpr size_t kMaxCopiedBytes = size_t{1} << 30;  // of functions' bodies, inlined
inline constexpr int64_t kMaxDimension = int64_t{1} << 40;
inline constexpr int64_t kMaxElements = int64_t{1} << 40;  // of one tensor

// A call on constants is evaluated while importing if its result has at most this many elements
// (shape arithmetic is integer and may be larger than weights worth keeping) and costs at most this
// much work. All folded results together stay below kMaxFoldedBytes.
inline constexpr int64_t kMaxFoldedElements = 1 << 16;
inline constexpr int64_t kMaxFoldedIntegers = 1 << 22;
inline constexpr double kMaxFoldedFlops = 1e9;      // of one call
inline constexpr double kMaxAllFoldedFlops = 1e11;  // of all together
inline constexpr size_t kMaxFoldedBytes = size_t{256} << 20;

}  // namespace collage::frontend
