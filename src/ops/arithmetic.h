// Integer arithmetic of kernels: it wraps around instead of being undefined, and sums are
// accumulated in 64 bits.
#pragma once

#include <cstdint>
#include <type_traits>

namespace collage {

template <typename T>
T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T>
T wrap_subtract(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T>
T wrap_multiply(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The type in which a sum of T is accumulated: double for floats, wrapping 64-bit integers
// otherwise.
template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

}  // namespace collage
