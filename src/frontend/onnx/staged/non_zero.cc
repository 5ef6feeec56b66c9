#include "frontend/onnx/staged/non_zero.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "runtime/dispatch.h"

namespace collage::frontend {

namespace {

// Calls use(outer, inner) for each element that is not zero: its row and its place within.
template <typename Bits, typename F>
void for_each_non_zero(const Tensor& data, int64_t extent, F&& use) {
  const Bits* values = data.data<Bits>();
  // The sign of a zero does not count.
  constexpr auto kAll = static_cast<Bits>(~Bits{0});
  const Bits mask = is_float(data.dtype()) ? static_cast<Bits>(kAll >> 1) : kAll;
  const int64_t rows = data.size() == 0 ? 0 : data.size() / extent;
  for (int64_t row = 0; row < rows; ++row, values += extent)
    for (int64_t i = 0; i < extent; ++i)
      if ((values[i] & mask) != 0) use(row, i);
}

}  // namespace

Result<Tensor> find_non_zero(const Tensor& data) {
  const Shape shape = data.rank() == 0 ? Shape{1} : data.shape();
  const size_t last = shape.size() - 1;
  return dispatch_size(dtype_size(data.dtype()), [&]<typename Bits>(Tag<Bits>) -> Result<Tensor> {
    int64_t count = 0;
    for_each_non_zero<Bits>(data, shape[last], [&](int64_t, int64_t) { ++count; });
    Tensor result =
        TRY(Tensor::allocate(DType::kInt64, {static_cast<int64_t>(shape.size()), count}));
    int64_t* const to = result.data<int64_t>();
    std::vector<int64_t> index(shape.size());
    int64_t known_row = -1, column = 0;
    for_each_non_zero<Bits>(data, shape[last], [&](int64_t row, int64_t i) {
      if (row != known_row) {
        known_row = row;
        for (size_t axis = last; axis-- > 0; row /= shape[axis]) index[axis] = row % shape[axis];
      }
      index[last] = i;
      for (size_t axis = 0; axis <= last; ++axis)
        to[static_cast<int64_t>(axis) * count + column] = index[axis];
      ++column;
    });
    return result;
  });
}

}  // namespace collage::frontend
