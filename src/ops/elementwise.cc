#include "ops/elementwise.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/integers.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

// Fewer elements are not worth waking the team.
constexpr int64_t kShared = 8192;

// Elements of an operand that are copied at once to lie side by side.
constexpr int64_t kMostInRow = 1024;

// Dimensions common to an output and its operands, collapsed where every operand allows it.
struct BroadcastLoop {
  Shape extents;
  std::vector<Ints> strides;  // of each operand

  BroadcastLoop(std::span<const Tensor* const> operands, const Shape& out)
      : strides(operands.size()) {
    std::vector<Ints> full;
    for (const Tensor* operand : operands) full.push_back(broadcast_strides(operand->shape(), out));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == 1) continue;
      bool merge = !extents.empty();
      for (size_t k = 0; k < full.size(); ++k)
        merge = merge && strides[k].back() == full[k][i] * out[i];
      if (merge) {
        extents.back() *= out[i];
      } else {
        extents.push_back(out[i]);
      }
      for (size_t k = 0; k < full.size(); ++k) {
        if (!merge) strides[k].push_back(0);
        strides[k].back() = full[k][i];
      }
    }
    if (extents.empty()) {
      extents.push_back(1);
      for (Ints& all : strides) all.push_back(0);
    }
  }
};

// `count` elements side by side, `step` elements apart at `from`.
template <typename T>
void collect(const void* from, int64_t step, int64_t count, void* to) {
  for (int64_t i = 0; i < count; ++i)
    static_cast<T*>(to)[i] = static_cast<const T*>(from)[i * step];
}

}  // namespace

void map_rows(std::span<const Tensor* const> operands, Tensor& out, RowFunction body) {
  const BroadcastLoop loop(operands, out.shape());
  const int64_t total = num_elements(loop.extents);
  if (total == 0) return;
  const size_t count = operands.size(), last = loop.extents.size() - 1;
  const int64_t length = loop.extents[last];
  const int64_t parts = ceil_div(length, kMostInRow);
#pragma omp parallel if (total > kShared)
  {
    // Of operands whose elements are no neighbours.
    std::vector<std::unique_ptr<uint64_t[]>> copies(count);
    for (size_t k = 0; k < count; ++k)
      if (loop.strides[k][last] != 1)
        copies[k] = std::make_unique_for_overwrite<uint64_t[]>(kMostInRow);
    std::vector<const void*> from(count);
#pragma omp for schedule(static)
    for (int64_t task = 0; task < total / length * parts; ++task) {
      const int64_t row = task / parts, begin = task % parts * kMostInRow;
      const int64_t elements = std::min(kMostInRow, length - begin);
      for (size_t k = 0; k < count; ++k) {
        const Ints& strides = loop.strides[k];
        int64_t offset = begin * strides[last], rest = row;
        for (size_t d = last; d-- > 0; rest /= loop.extents[d])
          offset += rest % loop.extents[d] * strides[d];
        const size_t bytes = dtype_size(operands[k]->dtype());
        from[k] =
            static_cast<const char*>(operands[k]->raw()) + offset * static_cast<int64_t>(bytes);
        if (copies[k] == nullptr) continue;
        dispatch_size(bytes, [&]<typename T>(Tag<T>) {
          collect<T>(from[k], strides[last], elements, copies[k].get());
        });
        from[k] = copies[k].get();
      }
      body(from.data(),
           static_cast<char*>(out.raw()) +
               (row * length + begin) * static_cast<int64_t>(dtype_size(out.dtype())),
           elements);
    }
  }
}

}  // namespace collage
