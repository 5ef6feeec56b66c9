// Tensors in the memory of a device other than the host. Programs of fixed shapes take them as
// inputs and outputs: what the program uses on that device is used in place, what it uses elsewhere
// is copied there.
//
//   collage::Result<collage::Tensor> x = collage::copy_to("opencl:0", host);
//   std::vector<collage::Tensor> outputs = {*collage::allocate_on("opencl:0", dtype, shape)};
//   program.run({*x}, outputs);
//   collage::Result<collage::Tensor> y = collage::copy_to("cpu", outputs[0]);
//
// Tensor::to_dlpack views them as of kDLExtDev, with the number of the device.
//
// Their addresses stand for the device's memory: a host that follows one dies. Backends offer
// memory once a program that uses them was compiled or loaded, or their plugin was.
#pragma once

#include <collage/tensor.h>

#include <string>

namespace collage {

// Allocates uninitialised storage on a device, "gpu:1", or in a memory scope of it,
// "gpu:1/texture"; "cpu": as Tensor::allocate. kUsage: the text names no device; kUnavailable: no
// backend offers its memory here, or it has no room.
Result<Tensor> allocate_on(const std::string& device, DType dtype, Shape shape);
// Copies a tensor, wherever it is, to a device.
Result<Tensor> copy_to(const std::string& device, const Tensor& tensor);
// Returns where a tensor lies: "gpu:1", "cpu".
std::string device_of(const Tensor& tensor);

}  // namespace collage
