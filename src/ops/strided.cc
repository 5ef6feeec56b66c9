#include "ops/strided.h"

#include <algorithm>

#include "runtime/dispatch.h"

namespace collage {

namespace {

// Dimensions without those of extent 1, neighbours merged where both sides are contiguous.
struct Loop {
  Shape extents;
  Ints from, to;
};
Loop collapse(const Shape& extents, const Ints& from, const Ints& to) {
  Loop loop;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    if (!loop.extents.empty() && loop.from.back() == from[i] * extents[i] &&
        loop.to.back() == to[i] * extents[i]) {
      loop.extents.back() *= extents[i];
      loop.from.back() = from[i];
      loop.to.back() = to[i];
    } else {
      loop.extents.push_back(extents[i]);
      loop.from.push_back(from[i]);
      loop.to.push_back(to[i]);
    }
  }
  if (loop.extents.empty()) loop = {{1}, {1}, {1}};
  return loop;
}

template <typename T>
void copy_row(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::copy(from, from + count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

}  // namespace

Ints dense_strides(const Shape& shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Ints broadcast_strides(const Shape& shape, const Shape& to) {
  Ints dense = dense_strides(shape);
  Ints strides(to.size(), 0);
  size_t offset = to.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) strides[offset + i] = dense[i];
  return strides;
}

Ints batch_offsets(const Shape& operand, const Shape& batch, int64_t matrix) {
  Ints offsets(static_cast<size_t>(num_elements(batch)), 0);
  Ints strides = broadcast_strides(operand, batch);
  for (size_t i = 0; i < offsets.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t d = batch.size(); d-- > 0;) {
      offsets[i] += rest % batch[d] * strides[d] * matrix;
      rest /= batch[d];
    }
  }
  return offsets;
}

void copy_strided(const Shape& extents, size_t element_bytes, const Strided<const void>& from,
                  const Strided<void>& to) {
  if (num_elements(extents) == 0) return;
  const Loop loop = collapse(extents, from.strides, to.strides);
  const size_t last = loop.extents.size() - 1;
  const int64_t count = loop.extents[last];
  const int64_t rows = num_elements(loop.extents) / count;
  dispatch_size(element_bytes, [&]<typename T>(Tag<T>) {
    const T* source = static_cast<const T*>(from.data) + from.offset;
    T* target = static_cast<T*>(to.data) + to.offset;
#pragma omp parallel for schedule(static) if (rows > 1 && rows * count > 16384)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t rest = row, f = 0, t = 0;
      for (size_t d = last; d-- > 0;) {
        int64_t index = rest % loop.extents[d];
        rest /= loop.extents[d];
        f += index * loop.from[d];
        t += index * loop.to[d];
      }
      copy_row(source + f, loop.from[last], target + t, loop.to[last], count);
    }
  });
}

}  // namespace collage
