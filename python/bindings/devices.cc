// Tensors in the memory of a device (collage/device.h), which programs take and give in place of
// arrays, and DLPack passes on.
#include "devices.h"

#include <collage/device.h>
#include <dlpack/dlpack.h>

#include "arrays.h"

namespace collage::python {

namespace {

constexpr const char* kUnused = "dltensor";  // a capsule's name until somebody takes the tensor

nb::object capsule_of(const Tensor& tensor) {
  const auto let_go = [](PyObject* capsule) noexcept {
    if (PyCapsule_IsValid(capsule, kUnused) == 0) return;
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused));
    managed->deleter(managed);
  };
  return nb::steal(PyCapsule_New(tensor.to_dlpack(), kUnused, let_go));
}

Tensor tensor_of(nb::handle object) {
  Tensor tensor;
  return nb::try_cast<Tensor>(object, tensor) ? tensor : copy_of(object, "array");
}

}  // namespace

void bind_devices(nb::module_& core) {
  nb::class_<Tensor>(core, "DeviceTensor",
                     "A tensor in the memory of a device. Programs take it as an input, and "
                     "compute into it as an output; other libraries see it by DLPack.")
      .def_prop_ro(
          "shape",
          [](const Tensor& tensor) {
            nb::list shape;
            for (const int64_t extent : tensor.shape()) shape.append(extent);
            return nb::tuple(shape);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype",
                   [](const Tensor& tensor) { return std::string(dtype_name(tensor.dtype())); })
      .def_prop_ro("device", [](const Tensor& tensor) { return device_of(tensor); })
      .def(
          "numpy",
          [](const Tensor& tensor) {
            return array_of(value_of(copy_to("cpu", tensor)), Library::kNumPy);
          },
          "A copy in the host's memory.")
      .def("__dlpack__", [](const Tensor& tensor, const nb::kwargs&) { return capsule_of(tensor); })
      .def("__dlpack_device__", [](const Tensor& tensor) {
        DLManagedTensor* managed = tensor.to_dlpack();
        const DLDevice device = managed->dl_tensor.device;
        managed->deleter(managed);
        return nb::make_tuple(static_cast<int>(device.device_type), device.device_id);
      });
  core.def(
      "copy_to",
      [](const std::string& device, nb::handle array) {
        return value_of(copy_to(device, tensor_of(array)));
      },
      nb::arg("device"), nb::arg("array"),
      "A copy of an array, or of another device's tensor, in the memory of a device: "
      "\"opencl:0\".");
  core.def(
      "allocate_on",
      [](const std::string& device, const Shape& shape, const std::string& dtype) {
        return value_of(allocate_on(device, value_of(parse_dtype(dtype)), shape));
      },
      nb::arg("device"), nb::arg("shape"), nb::arg("dtype") = "float32",
      "A tensor of any contents there, for a program to compute into.");
}

}  // namespace collage::python
