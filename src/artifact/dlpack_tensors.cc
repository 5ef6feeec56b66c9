#include "artifact/dlpack_tensors.h"

#include <algorithm>
#include <vector>

#include "base/result.h"
#include "ops/strided.h"
#include "runtime/dlpack_type.h"

namespace collage {

namespace {

char* data_of(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

Ints strides_of(const DLTensor& tensor, const Shape& shape) {
  if (tensor.strides == nullptr) return dense_strides(shape);
  return Ints(tensor.strides, tensor.strides + tensor.ndim);
}

// Strides of dimensions of one element mean nothing.
bool is_dense(const DLTensor& tensor, const Shape& shape) {
  const Ints dense = dense_strides(shape), given = strides_of(tensor, shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && given[d] != dense[d]) return false;
  return true;
}

}  // namespace

Result<Tensor> borrow_dlpack(const DLTensor& given, const TensorType& type,
                             const std::string& what) {
  if (given.device.device_type != kDLCPU) return bad_model("{}: it is not on the CPU", what);
  const DLDataType wanted = dl_data_type(type.dtype);
  const bool is_bool = type.dtype == DType::kBool && given.dtype.bits == 8;  // also as kDLBool
  if (given.dtype.bits != wanted.bits || given.dtype.lanes != 1 ||
      (given.dtype.code != wanted.code && !is_bool))
    return bad_model("{}: expected {}, got another element type", what, dtype_name(type.dtype));
  if (given.ndim < 0 || (given.ndim > 0 && given.shape == nullptr))
    return bad_model("{}: it has no shape", what);
  const Shape shape = given.ndim > 0 ? Shape(given.shape, given.shape + given.ndim) : Shape();
  if (shape != type.shape)
    return bad_model("{}: expected {}, got {}", what, shape_to_string(type.shape),
                     shape_to_string(shape));
  if (given.data == nullptr && num_elements(shape) > 0)
    return bad_model("{}: it has no data", what);
  if (is_dense(given, shape)) return Tensor::borrow(type.dtype, shape, data_of(given));
  Tensor copy = TRY(Tensor::allocate(type.dtype, shape));
  copy_strided(shape, dtype_size(type.dtype), {data_of(given), 0, strides_of(given, shape)},
               {copy.raw(), 0, dense_strides(shape)});
  return copy;
}

TensorMemory memory_of(const DLTensor& tensor) {
  const auto rank = static_cast<size_t>(std::max(0, tensor.ndim));
  TensorMemory memory{data_of(tensor), tensor.dtype.bits / 8u, {tensor.shape, rank}, {}};
  if (tensor.strides != nullptr && !is_dense(tensor, Shape(tensor.shape, tensor.shape + rank)))
    memory.strides = {tensor.strides, rank};
  return memory;
}

void copy_to_dlpack(const Tensor& from, const DLTensor& to) {
  const Shape& shape = from.shape();
  copy_strided(shape, dtype_size(from.dtype()), {from.raw(), 0, dense_strides(shape)},
               {data_of(to), 0, strides_of(to, shape)});
}

}  // namespace collage
