// Integer division that rounds up. Values are not negative; sums stay in range.
#pragma once

#include <concepts>
#include <type_traits>

namespace collage {

template <std::integral T>
constexpr T ceil_div(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}

// The smallest multiple of `unit` that is not less.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace collage
