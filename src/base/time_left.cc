#include "base/time_left.h"

#include <algorithm>

namespace collage {

double TimeLeft::tell(double elapsed, size_t worked, size_t remaining) {
  constexpr double kMostRise = 1.1;
  const double by_rate = elapsed / static_cast<double>(worked) * static_cast<double>(remaining);
  told_ = told_ > 0 ? std::min(by_rate, kMostRise * told_) : by_rate;
  return told_;
}

}  // namespace collage
