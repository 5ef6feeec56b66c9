#include "cost/cost.h"

#include <fmt/format.h>

namespace collage {

CacheState CacheState::streaming(double bytes) {
  constexpr int kSteps[] = {192, 256, 384, 512, 768, 1024};
  const double megabytes = bytes / (1 << 20);
  int chosen = kSteps[0];
  for (int step : kSteps)
    if (step <= 1.25 * megabytes) chosen = step;
  return {Kind::kStreaming, chosen};
}

std::string CacheState::name() const {
  switch (kind) {
    case Kind::kWarm:
      return "warm";
    case Kind::kCold:
      return "cold";
    case Kind::kStreaming:
      break;
  }
  return fmt::format("streaming {} MB", megabytes);
}

}  // namespace collage
