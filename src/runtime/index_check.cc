#include "runtime/index_check.h"

namespace collage {
namespace {

template <typename T>
Status check(const T* values, int64_t count, const std::vector<int64_t>& extents) {
  const size_t period = extents.size();
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
