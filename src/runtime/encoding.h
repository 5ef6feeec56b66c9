// Encoding: how a tensor exists at a kernel boundary: its dtype, its layout, and the virtual device
// (device and memory scope) it lives on. Every change of encoding is a conversion, a kernel with a
// measured cost, so that one search covers layout, precision and placement.
#pragma once

#include <compare>
#include <string>

#include "runtime/layout.h"
#include "runtime/tensor_type.h"

namespace collage {

// A device by kind and number, and a memory scope on it ("" is the device's ordinary memory).
struct VirtualDevice {
  std::string device = "cpu";
  int id = 0;
  std::string memory_scope;
  auto operator<=>(const VirtualDevice&) const = default;
};

// Returns whether its memory is the host's: all CPU devices share that.
inline bool is_host_memory(const VirtualDevice& device) {
  return device.device == "cpu" && device.memory_scope.empty();
}
// Returns the device whose memory it is: the host for all CPU devices.
inline VirtualDevice memory_device(const VirtualDevice& device) {
  return is_host_memory(device) ? VirtualDevice{} : device;
}
// "gpu:1", "gpu:0/texture"
std::string device_text(const VirtualDevice& device);

struct Encoding {
  DType dtype = DType::kFloat32;
  Layout layout;
  VirtualDevice device;
  bool operator==(const Encoding&) const = default;
  bool operator<(const Encoding& other) const {
    if (dtype != other.dtype) return dtype < other.dtype;
    if (!(layout == other.layout)) return layout < other.layout;
    return device < other.device;
  }
  bool is_plain() const { return layout.is_plain() && device == VirtualDevice{}; }
  // Returns whether it is row-major, on any device: views of such a tensor share its memory.
  bool is_linear(DType own) const { return layout.is_plain() && dtype == own; }
  // "float32:aBcd16b@gpu:0", "float32" when plain on the CPU
  std::string to_string() const;
};

// The encoding of inputs, constants and results: row-major on the CPU, in the type's own dtype.
inline Encoding plain_encoding(const TensorType& type) {
  return {type.dtype, Layout(), VirtualDevice()};
}

}  // namespace collage
