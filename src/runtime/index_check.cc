#include "runtime/index_check.h"

namespace collage {
namespace {

template <typename T>
Status check(const T* values, int64_t count, const std::vector<int64_t>& extents) {
  const size_t period = extents.size();
  // Mostly all are in range, which the signs of sums and differences tell without a look at each.
  if (period == 1) {
    const auto reach = static_cast<uint64_t>(extents[0]);
    uint64_t signs = 0;
#pragma omp parallel for simd schedule(static) reduction(| : signs) if (count > 65536)
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t from_least = static_cast<uint64_t>(static_cast<int64_t>(values[i])) + reach;
      signs |= from_least | (2 * reach - 1 - from_least);
    }
    if (static_cast<int64_t>(signs) >= 0) return {};
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t extent = extents[static_cast<size_t>(i) % period];
    const auto index = static_cast<int64_t>(values[i]);
    if (index < -extent || index >= extent)
      return bad_model("index {} is out of range for extent {}", index, extent);
  }
  return {};
}

}  // namespace

Status check_indices(const int32_t* values, int64_t count, const std::vector<int64_t>& extents) {
  return check(values, count, extents);
}
Status check_indices(const int64_t* values, int64_t count, const std::vector<int64_t>& extents) {
  return check(values, count, extents);
}

}  // namespace collage
