#include "backend/native/codegen/array_size.h"

namespace collage::native {

Status check_array_size(std::string_view name, const TensorType& type) {
  const int64_t most = kMostBytes / static_cast<int64_t>(dtype_size(type.dtype));
  int64_t elements = 1;
  for (const int64_t extent : type.shape)
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > most)
      return unsupported("native: {} has more than {} bytes", name, kMostBytes);
  return {};
}

}  // namespace collage::native
