// Tensors of the user and at kernel boundaries: a dtype, a row-major shape and bytes. Copies share
// storage; `clone()` copies the bytes. Storage that the library allocates is aligned to 64 bytes.
#pragma once

#include <collage/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct DLManagedTensor;

namespace collage {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,  // one byte, 0 or 1
};

size_t dtype_size(DType dtype);                    // bytes of one element
std::string_view dtype_name(DType dtype);          // "float32", "int64", "bool" …
Result<DType> parse_dtype(std::string_view name);  // inverse of dtype_name
bool is_float(DType dtype);
bool is_integer(DType dtype);  // signed or unsigned, not bool

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUInt16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUInt32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUInt64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

using Shape =
    std::vector<int64_t>;  // row-major, outermost first; empty for a scalar; dimensions are >= 0

// Returns the number of elements (1 for a scalar), or an error if a dimension is negative or the
// product overflows 2^62.
Result<int64_t> checked_num_elements(const Shape& shape);
int64_t num_elements(const Shape& shape);         // for shapes already known to be valid
std::string shape_to_string(const Shape& shape);  // "(1, 3, 224, 224)"

class Tensor {
 public:
  Tensor() = default;  // empty: no storage, `defined()` is false
  // Allocates uninitialised storage. kInternal: the memory cannot be had or the size overflows.
  static Result<Tensor> allocate(DType dtype, Shape shape);
  // Does the same and aborts on failure: for shapes that are already in memory elsewhere.
  static Tensor empty(DType dtype, Shape shape);
  static Tensor zeros(DType dtype, Shape shape);
  // Copies values, whose number must be the shape's.
  template <typename T>
  static Tensor from(Shape shape, const std::vector<T>& values);
  template <typename T>
  static Tensor scalar(T value) {
    return from<T>({}, {value});
  }
  // Views memory that the caller owns and keeps alive.
  static Tensor borrow(DType dtype, Shape shape, void* data);
  // Views memory and keeps `owner` alive.
  static Tensor share(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data);

  bool defined() const { return data_ != nullptr || owner_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size() const { return num_elements(shape_); }
  size_t bytes() const { return static_cast<size_t>(size()) * dtype_size(dtype_); }
  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <typename T>
  T* data() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(size())};
  }

  Tensor clone() const;
  // Shares the storage with another shape of equally many elements.
  Tensor reshaped(Shape shape) const;
  // Returns an element as double or int64, whatever the dtype (slow: for attributes, small
  // constants, printing).
  double element_as_double(int64_t index) const;
  int64_t element_as_int64(int64_t index) const;
  // Returns a DLPack view of this tensor on the CPU that keeps the storage alive until its deleter
  // runs.
  DLManagedTensor* to_dlpack() const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

template <typename T>
Tensor Tensor::from(Shape shape, const std::vector<T>& values) {
  Tensor tensor = empty(DTypeOf<T>::value, std::move(shape));
  if (tensor.size() != static_cast<int64_t>(values.size())) std::abort();
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = values[i];
  return tensor;
}

}  // namespace collage
