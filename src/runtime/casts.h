// Casts of real numbers, which are cut off towards zero. ONNX leaves open the result for a number
// that the type does not hold; here it is that of the x86 instruction, as in other runtimes: the
// least int32 (for int64, uint32 and uint64 the least int64), or its low bits for narrower types.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace collage {

template <typename To>
To integer_from(double real) {
  static_assert(std::is_integral_v<To>);
  constexpr bool kBySmall = sizeof(To) < 4 || std::is_same_v<To, int32_t>;
  using Wide = std::conditional_t<kBySmall, int32_t, int64_t>;
  const double whole = std::trunc(real);
  if constexpr (std::is_same_v<To, uint64_t>)
    if (whole >= 0 && whole < 0x1p64) return static_cast<uint64_t>(whole);
  constexpr double kBeyond = kBySmall ? 0x1p31 : 0x1p63;
  const bool holds = whole >= -kBeyond && whole < kBeyond;  // no NaN
  return static_cast<To>(holds ? static_cast<Wide>(whole) : std::numeric_limits<Wide>::min());
}

}  // namespace collage
