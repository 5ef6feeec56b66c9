// Integer division that rounds up (values are not negative; sums stay in range), and extents as
// int.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace collage {

template <std::integral T>
constexpr T ceil_div(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}

// Returns the smallest multiple of `unit` that is not less.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) {
  return ceil_div(value, unit) * unit;
}

// Extents are small enough for index arithmetic in 32 bits.
inline int to_int(int64_t v) { return static_cast<int>(v); }

}  // namespace collage
