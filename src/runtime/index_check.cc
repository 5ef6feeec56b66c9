#include "runtime/index_check.h"

#include <algorithm>

namespace collage {
namespace {

/// Negative if an entry is outside of [-reach, reach): the signs of sums and differences tell.
template <typename T>
[[gnu::always_inline]] inline uint64_t signs(const T* values, int64_t count, uint64_t reach) {
  uint64_t all = 0;
#pragma omp simd reduction(| : all)
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t from_least = static_cast<uint64_t>(static_cast<int64_t>(values[i])) + reach;
    all |= from_least | (2 * reach - 1 - from_least);
  }
  return all;
}

// The instruction set is chosen when the program starts; sanitizers do not survive the resolver.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target("avx512f"))) uint64_t signs_of(const int64_t* values, int64_t count,
                                                     uint64_t reach) {
  return signs(values, count, reach);
}
__attribute__((target("avx2"))) uint64_t signs_of(const int64_t* values, int64_t count,
                                                  uint64_t reach) {
  return signs(values, count, reach);
}
__attribute__((target("default")))
#endif
uint64_t
signs_of(const int64_t* values, int64_t count, uint64_t reach) {
  return signs(values, count, reach);
}
uint64_t signs_of(const int32_t* values, int64_t count, uint64_t reach) {
  return signs(values, count, reach);
}

template <typename T>
Status check(const T* values, int64_t count, const std::vector<int64_t>& extents) {
  const size_t period = extents.size();
  // Mostly all are in range, which is told without a look at each.
  if (period == 1) {
    constexpr int64_t kChunk = 32768;
    const auto reach = static_cast<uint64_t>(extents[0]);
    uint64_t all = 0;
#pragma omp parallel for schedule(static) reduction(| : all) if (count > 2 * kChunk)
    for (int64_t begin = 0; begin < count; begin += kChunk)
      all |= signs_of(values + begin, std::min(kChunk, count - begin), reach);
    if (static_cast<int64_t>(all) >= 0) return {};
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
