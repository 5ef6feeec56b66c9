// Tensors in a device's memory (collage/device.h) are known by their addresses.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "runtime/device_memory.h"

namespace collage {

struct PlaceOnDevice {
  VirtualDevice device;
  DeviceMemory* memory;
};
// Returns none for the host's memory.
std::optional<PlaceOnDevice> place_of(const Tensor& tensor);
// kUsage: a tensor, which `role` names, is not in the host's memory.
Status check_on_host(std::span<const Tensor> tensors, std::string_view role);

}  // namespace collage
