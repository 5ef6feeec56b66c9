#include "frontend/onnx/tensor_data.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>

#include "base/integers.h"
#include "frontend/onnx/large_weights.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/narrow_types.h"
#include "runtime/shared_constants.h"

namespace collage::frontend {

static_assert(std::endian::native == std::endian::little, "ONNX data is little-endian");

namespace {

using ::onnx::TensorProto;

Result<Shape> checked_shape(const TensorProto& tensor) {
  if (tensor.dims_size() > kMaxRank)
    return bad_model("rank {}, the limit is {}", tensor.dims_size(), kMaxRank);
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  int64_t count = TRY(checked_num_elements(shape));
  if (count > kMaxElements)
    return bad_model("shape {} has {} elements, the limit is {}", shape_to_string(shape), count,
                     kMaxElements);
  return shape;
}

struct ExternalPlace {
  std::string location;
  uint64_t offset = 0;
  bool has_length = false;
  uint64_t length = 0;
};

Result<uint64_t> parse_count(const std::string& text, const char* what) {
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    return bad_model("external data: {} '{}' is not a number of bytes", what, text.substr(0, 64));
  return value;
}

Result<ExternalPlace> external_place(const TensorProto& tensor) {
  ExternalPlace place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = TRY(parse_count(entry.value(), "offset"));
    if (entry.key() == "length") {
      place.length = TRY(parse_count(entry.value(), "length"));
      place.has_length = true;
    }
  }
  return place;
}

bool is_external(const TensorProto& tensor) {
  return tensor.data_location() == TensorProto::EXTERNAL;
}

// Elements in the field that holds values of this type when they are not raw.
int64_t typed_count(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return tensor.float_data_size();
    case TensorProto::DOUBLE:
      return tensor.double_data_size();
    case TensorProto::INT64:
      return tensor.int64_data_size();
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return tensor.uint64_data_size();
    default:
      return tensor.int32_data_size();
  }
}

template <typename To, typename From>
void copy_values(const From& from, void* to) {
  auto* out = static_cast<To*>(to);
  for (const auto& value : from) *out++ = static_cast<To>(value);
}

void copy_typed(const TensorProto& tensor, void* to) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return copy_values<float>(tensor.float_data(), to);
    case TensorProto::DOUBLE:
      return copy_values<double>(tensor.double_data(), to);
    case TensorProto::INT64:
      return copy_values<int64_t>(tensor.int64_data(), to);
    case TensorProto::UINT64:
      return copy_values<uint64_t>(tensor.uint64_data(), to);
    case TensorProto::UINT32:
      return copy_values<uint32_t>(tensor.uint64_data(), to);
    case TensorProto::INT32:
      return copy_values<int32_t>(tensor.int32_data(), to);
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return copy_values<uint16_t>(tensor.int32_data(), to);
    default:
      return copy_values<uint8_t>(tensor.int32_data(), to);
  }
}

}  // namespace

std::string onnx_type_name(int32_t data_type) {
  if (!::onnx::TensorProto_DataType_IsValid(data_type)) return fmt::format("type {}", data_type);
  return ::onnx::TensorProto_DataType_Name(static_cast<TensorProto::DataType>(data_type));
}

Result<DType> dtype_from_onnx(int32_t data_type) {
  switch (data_type) {
    case TensorProto::FLOAT:
      return DType::kFloat32;
    case TensorProto::DOUBLE:
      return DType::kFloat64;
    case TensorProto::FLOAT16:
      return DType::kFloat16;
    case TensorProto::BFLOAT16:
      return DType::kBFloat16;
    case TensorProto::INT8:
      return DType::kInt8;
    case TensorProto::INT16:
      return DType::kInt16;
    case TensorProto::INT32:
      return DType::kInt32;
    case TensorProto::INT64:
      return DType::kInt64;
    case TensorProto::UINT8:
      return DType::kUInt8;
    case TensorProto::UINT16:
      return DType::kUInt16;
    case TensorProto::UINT32:
      return DType::kUInt32;
    case TensorProto::UINT64:
      return DType::kUInt64;
    case TensorProto::BOOL:
      return DType::kBool;
    case TensorProto::UNDEFINED:
      return bad_model("the element type is undefined");
    default:
      if (!::onnx::TensorProto_DataType_IsValid(data_type))
        return bad_model("unknown element type {}", data_type);
      return unsupported("element type {}", onnx_type_name(data_type));
  }
}

Result<DType> carrier_from_onnx(int32_t data_type) {
  if (const NarrowType* narrow = narrow_type(data_type)) return narrow->carrier;
  return dtype_from_onnx(data_type);
}

namespace {

// How a tensor's elements stand in the message or file.
struct Storage {
  Shape shape;
  DType dtype = DType::kFloat32;       // of the tensor that they become
  const NarrowType* narrow = nullptr;  // in bytes that hold one or several
  int64_t count() const { return num_elements(shape); }
  int64_t items() const {
    return narrow != nullptr ? ceil_div(count(), 8 / narrow->bits) : count();
  }
  uint64_t bytes() const {
    return static_cast<uint64_t>(items()) * (narrow != nullptr ? 1 : dtype_size(dtype));
  }
};

Result<Storage> storage_of(const TensorProto& tensor) {
  Storage storage;
  storage.shape = TRY(checked_shape(tensor));
  storage.narrow = narrow_type(tensor.data_type());
  storage.dtype = TRY(carrier_from_onnx(tensor.data_type()));
  return storage;
}

// In place, from the last element on: none is written over bits that are still to be read.
void unpack(void* tensor, int64_t count, const NarrowType& type) {
  auto* bytes = static_cast<uint8_t*>(tensor);
  auto* floats = static_cast<float*>(tensor);
  const int64_t in_byte = 8 / type.bits;
  const int span = 1 << type.bits;
  for (int64_t i = count; i-- > 0;) {
    const int value = bytes[i / in_byte] >> (i % in_byte * type.bits) & (span - 1);
    if (type.is_float()) {
      floats[i] = narrow_float(type, static_cast<unsigned>(value));
    } else {
      bytes[i] = static_cast<uint8_t>(type.is_signed() && value >= span / 2 ? value - span : value);
    }
  }
}

}  // namespace

Result<uint64_t> TensorData::check(const TensorProto& tensor) {
  const Storage storage = TRY(storage_of(tensor));
  if (tensor.has_segment()) return unsupported("a tensor in segments");
  const uint64_t bytes = storage.bytes();
  const std::string type = storage.narrow != nullptr ? onnx_type_name(tensor.data_type())
                                                     : std::string(dtype_name(storage.dtype));
  if (is_external(tensor)) {
    ExternalPlace place = TRY(external_place(tensor));
    if (place.has_length && place.length != bytes)
      return bad_model("{} has {} bytes, shape {} of {} needs {}",
                       place.location == kOwnFile ? "raw_data" : "external data", place.length,
                       shape_to_string(storage.shape), type, bytes);
    TRY(external_.check(place.location, place.offset, bytes));
  } else if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != bytes)
      return bad_model("raw_data has {} bytes, shape {} of {} needs {}", tensor.raw_data().size(),
                       shape_to_string(storage.shape), type, bytes);
  } else if (typed_count(tensor) != storage.items()) {
    return bad_model("{} values, shape {} needs {}", typed_count(tensor),
                     shape_to_string(storage.shape), storage.items());
  }
  return static_cast<uint64_t>(storage.count()) * dtype_size(storage.dtype);
}

Status TensorData::move_inline(TensorProto& tensor) {
  if (!is_external(tensor)) return {};
  TRY(check(tensor));
  const Storage storage = TRY(storage_of(tensor));
  const ExternalPlace place = TRY(external_place(tensor));
  std::string& raw = *tensor.mutable_raw_data();
  raw.resize(storage.bytes());
  TRY(external_.read(place.location, place.offset, storage.bytes(), raw.data()));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return {};
}

Result<Tensor> TensorData::take(TensorProto& tensor) {
  const uint64_t bytes = TRY(check(tensor));
  const Storage storage = TRY(storage_of(tensor));
  if (is_external(tensor) && bytes >= kLeastSharedBytes && storage.narrow == nullptr &&
      storage.dtype != DType::kBool) {
    const ExternalPlace place = TRY(external_place(tensor));
    // The model's own file may be written anew while it is in use.
    if (place.location != kOwnFile && place.offset % dtype_size(storage.dtype) == 0)
      if (auto mapped = external_.map(place.location, place.offset, bytes)) {
        const auto owner = std::const_pointer_cast<void>(*mapped);
        return Tensor::share(storage.dtype, storage.shape, owner, owner.get());
      }
  }
  Tensor result = TRY(Tensor::allocate(storage.dtype, storage.shape));
  if (is_external(tensor)) {
    ExternalPlace place = TRY(external_place(tensor));
    TRY(external_.read(place.location, place.offset, storage.bytes(), result.raw()));
  } else if (tensor.has_raw_data()) {
    std::unique_ptr<std::string> raw(tensor.release_raw_data());
    if (bytes > 0) std::memcpy(result.raw(), raw->data(), storage.bytes());
  } else {
    copy_typed(tensor, result.raw());
    // Clear() alone would keep the memory.
    TensorProto taken;
    tensor.mutable_float_data()->Swap(taken.mutable_float_data());
    tensor.mutable_double_data()->Swap(taken.mutable_double_data());
    tensor.mutable_int32_data()->Swap(taken.mutable_int32_data());
    tensor.mutable_int64_data()->Swap(taken.mutable_int64_data());
    tensor.mutable_uint64_data()->Swap(taken.mutable_uint64_data());
  }
  if (storage.narrow != nullptr) unpack(result.raw(), storage.count(), *storage.narrow);
  if (storage.dtype == DType::kBool)
    for (uint64_t i = 0; i < bytes; ++i) {
      auto* values = static_cast<uint8_t*>(result.raw());
      values[i] = values[i] != 0;
    }
  return shared_constant(result);
}

}  // namespace collage::frontend
