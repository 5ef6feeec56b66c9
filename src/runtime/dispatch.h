// Dispatches a run-time DType to a compile-time type: `dispatch_number(dtype, [&]<typename
// T>(Tag<T>) {…})`. Half-width floats have no C++ type here: kernels compute them as float, see
// ops/half.h. A dtype outside those dispatched over is a bug of the caller.
#pragma once

#include <collage/tensor.h>

#include <type_traits>

#include "base/check.h"

namespace collage {

template <typename T>
struct Tag {
  using type = T;
};

template <typename F>
auto dispatch_float(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(Tag<double>{});
  COLLAGE_CHECK(dtype == DType::kFloat32, "dtype {}", dtype_name(dtype));
  return f(Tag<float>{});
}

template <typename F>
auto dispatch_integer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8:
      return f(Tag<int8_t>{});
    case DType::kInt16:
      return f(Tag<int16_t>{});
    case DType::kInt32:
      return f(Tag<int32_t>{});
    case DType::kInt64:
      return f(Tag<int64_t>{});
    case DType::kUInt8:
      return f(Tag<uint8_t>{});
    case DType::kUInt16:
      return f(Tag<uint16_t>{});
    case DType::kUInt32:
      return f(Tag<uint32_t>{});
    default:
      COLLAGE_CHECK(dtype == DType::kUInt64, "dtype {}", dtype_name(dtype));
      return f(Tag<uint64_t>{});
  }
}

template <typename F>
auto dispatch_number(DType dtype, F&& f) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return dispatch_float(dtype, f);
  return dispatch_integer(dtype, f);
}

// A bool tensor is read and written as uint8_t.
template <typename F>
auto dispatch_any(DType dtype, F&& f) {
  if (dtype == DType::kBool) return f(Tag<uint8_t>{});
  return dispatch_number(dtype, f);
}

// Dispatches by the size of an element, for kernels that only move data.
template <typename F>
auto dispatch_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Tag<uint8_t>{});
    case 2:
      return f(Tag<uint16_t>{});
    case 4:
      return f(Tag<uint32_t>{});
    default:
      COLLAGE_CHECK(bytes == 8, "elements of {} bytes", bytes);
      return f(Tag<uint64_t>{});
  }
}

}  // namespace collage
