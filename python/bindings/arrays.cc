#include "arrays.h"

#include <collage/device.h>
#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace collage::python {

namespace {

struct Name {
  nb::dlpack::dtype_code code;
  uint8_t bits;
  DType dtype;
};
constexpr Name kNames[] = {
    {nb::dlpack::dtype_code::Float, 32, DType::kFloat32},
    {nb::dlpack::dtype_code::Float, 64, DType::kFloat64},
    {nb::dlpack::dtype_code::Float, 16, DType::kFloat16},
    {nb::dlpack::dtype_code::Bfloat, 16, DType::kBFloat16},
    {nb::dlpack::dtype_code::Int, 8, DType::kInt8},
    {nb::dlpack::dtype_code::Int, 16, DType::kInt16},
    {nb::dlpack::dtype_code::Int, 32, DType::kInt32},
    {nb::dlpack::dtype_code::Int, 64, DType::kInt64},
    {nb::dlpack::dtype_code::UInt, 8, DType::kUInt8},
    {nb::dlpack::dtype_code::UInt, 16, DType::kUInt16},
    {nb::dlpack::dtype_code::UInt, 32, DType::kUInt32},
    {nb::dlpack::dtype_code::UInt, 64, DType::kUInt64},
    {nb::dlpack::dtype_code::Bool, 8, DType::kBool},
};

std::optional<DType> dtype_of(const nb::dlpack::dtype& type) {
  for (const Name& name : kNames)
    if (static_cast<uint8_t>(name.code) == type.code && name.bits == type.bits && type.lanes == 1)
      return name.dtype;
  return std::nullopt;
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  for (const Name& name : kNames)
    if (name.dtype == dtype) return {static_cast<uint8_t>(name.code), name.bits, 1};
  return {};
}

std::string described(const TensorInfo& info) {
  const std::string shape = info.dims.empty() ? " " + shape_to_string(info.shape) : "";
  return std::string(dtype_name(info.dtype)) + shape;
}

// What is no array of numbers in CPU memory, and why where its dtype says: "ndarray of dtype >f4,
// whose bytes are not in this machine's order".
std::string described(nb::handle object) {
  std::string text = nb::type_name(object.type()).c_str();
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  if (dtype.is_none()) return text;
  text += " of dtype " + std::string(nb::str(dtype).c_str());
  const nb::object native = nb::getattr(dtype, "isnative", nb::none());
  if (native.is(nb::bool_(false))) text += ", whose bytes are not in this machine's order";
  return text;
}

// What lies on a device other than the CPU: a DeviceTensor, or what passes one on by DLPack. None
// if it does not, or in memory that is not Collage's.
std::optional<Tensor> on_device(nb::handle object) {
  Tensor tensor;
  if (nb::try_cast<Tensor>(object, tensor)) return tensor;
  const nb::object device = nb::getattr(object, "__dlpack_device__", nb::none());
  if (device.is_none() || nb::cast<int>(device()[0]) != kDLExtDev) return std::nullopt;
  const auto array = std::make_shared<nb::ndarray<nb::ro, nb::c_contig>>();
  if (!nb::try_cast(object, *array, false)) return std::nullopt;
  const std::optional<DType> dtype = dtype_of(array->dtype());
  Shape shape(array->ndim());
  for (size_t i = 0; i < array->ndim(); ++i) shape[i] = static_cast<int64_t>(array->shape(i));
  if (!dtype) return std::nullopt;
  tensor = Tensor::share(*dtype, std::move(shape), array, const_cast<void*>(array->data()));
  return device_of(tensor) == "cpu" ? std::nullopt : std::optional(tensor);
}

template <typename AnyArray>
Tensor view(nb::handle object, const TensorInfo& info, AnyArray& array, const char* role,
            bool may_copy) {
  if (!nb::try_cast<AnyArray>(object, array, may_copy)) {
    if (std::optional<Tensor> tensor = on_device(object)) return *std::move(tensor);
    const std::string text = std::string(role) + " '" + info.name + "': expected " +
                             (may_copy ? "" : "a contiguous, writable ") +
                             "array in CPU memory (NumPy, or a tensor that speaks DLPack and "
                             "wants no gradient), got " +
                             described(object);
    throw nb::type_error(text.c_str());
  }
  const std::optional<DType> dtype = dtype_of(array.dtype());
  Shape shape(array.ndim());
  for (size_t i = 0; i < array.ndim(); ++i) shape[i] = static_cast<int64_t>(array.shape(i));
  const bool is_open = !info.dims.empty() || !info.has_shape;  // the program says what fits
  if (dtype != info.dtype || (!is_open && shape != info.shape))
    raise(Status(ErrorCode::kBadModel,
                 std::string(role) + " '" + info.name + "': expected " + described(info) +
                     ", got " +
                     (dtype ? std::string(dtype_name(*dtype)) : std::string("another dtype")) +
                     " " + shape_to_string(shape)));
  return Tensor::borrow(info.dtype, std::move(shape),
                        const_cast<void*>(static_cast<const void*>(array.data())));
}

}  // namespace

void raise(const Status& status) {
  const nb::object type = nb::module_::import_("collage._error").attr("Error");
  const std::string text = status.to_string();  // may quote bytes of a file that are no UTF-8
  const nb::object message =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  const nb::object error = type(status.exit_code(), message);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

Tensor view_input(nb::handle object, const TensorInfo& info, Array& array) {
  return view(object, info, array, "input", true);
}
Tensor copy_of(nb::handle object, const std::string& role) {
  Array array;
  const std::optional<DType> dtype =
      nb::try_cast<Array>(object, array, true) ? dtype_of(array.dtype()) : std::nullopt;
  if (!dtype) {
    const std::string text =
        role + ": expected an array in CPU memory of numbers or booleans, got " + described(object);
    throw nb::type_error(text.c_str());
  }
  return view_input(object, TensorInfo{role, {}, *dtype, {}, false}, array).clone();
}
Tensor view_output(nb::handle object, const TensorInfo& info, WritableArray& array) {
  return view(object, info, array, "output", false);
}

Library library_of(nb::handle object) {
  const nb::object name =
      nb::getattr(object.type(), "__name__");  // the stable interface has no tp_name
  const char* text = nb::cast<const char*>(name);
  const bool may_be_torch = std::strcmp(text, "Tensor") == 0 || std::strcmp(text, "Parameter") == 0;
  if (!may_be_torch) return Library::kNumPy;
  const nb::object module = nb::getattr(object.type(), "__module__", nb::none());
  const bool is_torch = nb::isinstance<nb::str>(module) &&
                        std::strncmp(nb::cast<const char*>(module), "torch", 5) == 0;
  return is_torch ? Library::kTorch : Library::kNumPy;
}

namespace {

// Owns the tensor.
nb::capsule capsule_of(Tensor* tensor) {
  return nb::capsule(tensor, [](void* pointer) noexcept { delete static_cast<Tensor*>(pointer); });
}

}  // namespace

nb::object read_only_array_of(const Tensor& tensor) {
  auto* kept = new Tensor(tensor);
  const nb::capsule owner = capsule_of(kept);
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(kept->raw(), shape.size(), shape.data(), owner,
                                                 nullptr, dlpack_of(kept->dtype()),
                                                 nb::device::cpu::value));
}

nb::object array_of(const Tensor& tensor, Library library) {
  auto* kept = new Tensor(tensor);
  const nb::capsule owner = capsule_of(kept);
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  const nb::dlpack::dtype dtype = dlpack_of(kept->dtype());
  if (library == Library::kTorch)
    return nb::cast(nb::ndarray<nb::pytorch>(kept->raw(), shape.size(), shape.data(), owner,
                                             nullptr, dtype, nb::device::cpu::value));
  return nb::cast(nb::ndarray<nb::numpy>(kept->raw(), shape.size(), shape.data(), owner, nullptr,
                                         dtype, nb::device::cpu::value));
}

}  // namespace collage::python
