// Formats parts of a whole for people.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace collage {

// 0.0123 as "1.2%", 0.5 as "50%", 1 as "100%": two digits, or all in front of the point.
inline std::string percent_text(double part) {
  constexpr int kMostDecimals = 6;
  const double percent = 100 * part;
  int decimals = 0;
  if (percent > 0 && percent < 9.95)
    decimals = std::min(1 - static_cast<int>(std::floor(std::log10(percent))), kMostDecimals);
  return fmt::format("{:.{}f}%", percent, decimals);
}

}  // namespace collage
