#include <collage/tensor.h>
#include <dlpack/dlpack.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/integers.h"
#include "base/result.h"
#include "runtime/device_tensors.h"
#include "runtime/dispatch.h"
#include "runtime/dlpack_type.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  size_t size;
  DLDataTypeCode code;
};
constexpr DTypeInfo kDTypes[] = {
    {DType::kFloat32, "float32", 4, kDLFloat}, {DType::kFloat64, "float64", 8, kDLFloat},
    {DType::kFloat16, "float16", 2, kDLFloat}, {DType::kBFloat16, "bfloat16", 2, kDLBfloat},
    {DType::kInt8, "int8", 1, kDLInt},         {DType::kInt16, "int16", 2, kDLInt},
    {DType::kInt32, "int32", 4, kDLInt},       {DType::kInt64, "int64", 8, kDLInt},
    {DType::kUInt8, "uint8", 1, kDLUInt},      {DType::kUInt16, "uint16", 2, kDLUInt},
    {DType::kUInt32, "uint32", 4, kDLUInt},    {DType::kUInt64, "uint64", 8, kDLUInt},
    {DType::kBool, "bool", 1, kDLUInt},
};
const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

constexpr int64_t kMaxElements = int64_t{1} << 62;
constexpr size_t kAlignment = 64;
constexpr size_t kHugeBytes = size_t{4} << 20;  // above, a huge page's tail is small change

}  // namespace

size_t dtype_size(DType dtype) { return info(dtype).size; }
std::string_view dtype_name(DType dtype) { return info(dtype).name; }

Result<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& entry : kDTypes)
    if (entry.name == name) return entry.dtype;
  return usage_error("unknown dtype '{}'", name);
}

bool is_float(DType dtype) { return dtype <= DType::kBFloat16; }
bool is_integer(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }

Result<int64_t> checked_num_elements(const Shape& shape) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t extent : shape) {
    if (extent < 0) return bad_model("negative dimension in shape {}", shape_to_string(shape));
    if (extent == 0) {
      zero = true;
    } else if (count > kMaxElements / extent) {
      return bad_model("shape {} has too many elements", shape_to_string(shape));
    } else {
      count *= extent;
    }
  }
  return zero ? 0 : count;
}

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_to_string(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

Result<Tensor> Tensor::allocate(DType dtype, Shape shape) {
  int64_t count = TRY(checked_num_elements(shape));
  if (count > kMaxElements / static_cast<int64_t>(dtype_size(dtype)))
    return bad_model("a tensor of shape {} is too large", shape_to_string(shape));
  size_t bytes = static_cast<size_t>(count) * dtype_size(dtype);
  std::shared_ptr<void> memory;
  if (bytes >= kHugeBytes) {
    memory = TRY(allocate_on_huge_pages(bytes));
  } else {
    size_t rounded = round_up(bytes, kAlignment);
    memory = {std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment), std::free};
    if (memory == nullptr)
      return internal_error("out of memory: {} bytes for a tensor of shape {}", bytes,
                            shape_to_string(shape));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.data_ = memory.get();
  tensor.owner_ = std::move(memory);
  return tensor;
}

Tensor Tensor::empty(DType dtype, Shape shape) {
  Result<Tensor> tensor = allocate(dtype, std::move(shape));
  COLLAGE_CHECK(tensor.ok(), "{}", tensor.status().to_string());
  return std::move(tensor).value();
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor = empty(dtype, std::move(shape));
  std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::borrow(DType dtype, Shape shape, void* data) {
  return share(dtype, std::move(shape), nullptr, data);
}

Tensor Tensor::share(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.owner_ = std::move(owner);
  tensor.data_ = data;
  return tensor;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(dtype_, shape_);
  if (bytes() > 0) std::memcpy(copy.raw(), data_, bytes());
  return copy;
}

Tensor Tensor::reshaped(Shape shape) const {
  COLLAGE_CHECK(num_elements(shape) == size(), "reshape of {} to {}", shape_to_string(shape_),
                shape_to_string(shape));
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  return tensor;
}

namespace {

float half_to_float(uint16_t h) {
  _Float16 value;
  std::memcpy(&value, &h, sizeof value);
  return static_cast<float>(value);
}
float bfloat_to_float(uint16_t b) {
  uint32_t bits = static_cast<uint32_t>(b) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename Out>
Out element(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kFloat16)
    return static_cast<Out>(half_to_float(static_cast<const uint16_t*>(data)[i]));
  if (dtype == DType::kBFloat16)
    return static_cast<Out>(bfloat_to_float(static_cast<const uint16_t*>(data)[i]));
  if (dtype == DType::kBool) return static_cast<Out>(static_cast<const uint8_t*>(data)[i] != 0);
  return dispatch_number(
      dtype, [=]<typename T>(Tag<T>) { return static_cast<Out>(static_cast<const T*>(data)[i]); });
}

}  // namespace

double Tensor::element_as_double(int64_t index) const {
  return element<double>(data_, dtype_, index);
}
int64_t Tensor::element_as_int64(int64_t index) const {
  return element<int64_t>(data_, dtype_, index);
}

DLDataType dl_data_type(DType dtype) {
  return {static_cast<uint8_t>(info(dtype).code), static_cast<uint8_t>(8 * info(dtype).size), 1};
}

DLManagedTensor* Tensor::to_dlpack() const {
  struct Context {
    DLManagedTensor managed;
    Tensor tensor;
    Shape shape;
  };
  auto* context = new Context{{}, *this, shape_};
  DLTensor& view = context->managed.dl_tensor;
  view.data = data_;
  const std::optional<PlaceOnDevice> on = place_of(*this);
  view.device = on ? DLDevice{kDLExtDev, on->device.id} : DLDevice{kDLCPU, 0};
  view.ndim = static_cast<int32_t>(shape_.size());
  view.dtype = dl_data_type(dtype_);
  view.shape = context->shape.data();
  view.strides = nullptr;
  view.byte_offset = 0;
  context->managed.manager_ctx = context;
  context->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Context*>(self->manager_ctx);
  };
  return &context->managed;
}

}  // namespace collage
