#include "dynamic/host/slices.h"

#include <cstring>

namespace collage::dynamic {

Tensor flattened(const Tensor& data) { return data.reshaped({data.size()}); }

Result<Tensor> take_slices(const Tensor& data, int64_t axis, const std::vector<int64_t>& indices) {
  Shape shape = data.shape();
  const auto at = static_cast<size_t>(axis);
  const int64_t extent = shape[at];
  shape[at] = static_cast<int64_t>(indices.size());
  Tensor result = TRY(Tensor::allocate(data.dtype(), shape));
  if (result.size() == 0) return result;
  int64_t outer = 1;
  size_t run = dtype_size(data.dtype());  // bytes of a slice that stand together
  for (size_t i = 0; i < at; ++i) outer *= shape[i];
  for (size_t i = at + 1; i < shape.size(); ++i) run *= static_cast<size_t>(shape[i]);
  const auto* from = static_cast<const char*>(data.raw());
  auto* to = static_cast<char*>(result.raw());
  for (int64_t i = 0; i < outer; ++i, from += static_cast<size_t>(extent) * run)
    for (const int64_t index : indices) {
      std::memcpy(to, from + static_cast<size_t>(index) * run, run);
      to += run;
    }
  return result;
}

}  // namespace collage::dynamic
