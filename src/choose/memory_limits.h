// What a program may keep on a device, as a user limits it.
#pragma once

#include <string>
#include <vector>

#include "passes/devices/declared_devices.h"
#include "runtime/plan.h"

namespace collage {

struct MemoryLimit {
  VirtualDevice device;
  size_t bytes = 0;
  std::string text;  // as given
};

// "gpu:0=500M", "cpu:0=1073741824": bytes, or thousands, millions or billions of them. kUsage.
Result<std::vector<MemoryLimit>> parse_memory_limits(const std::vector<std::string>& texts,
                                                     const DeclaredDevices& devices);

// What a program keeps on all devices: the arenas, and what its kernels hold of constants.
size_t kept_bytes(const Plan& plan);

// kUnavailable where the plan keeps more: the arenas of all of the device's scopes, and what its
// kernels hold of constants.
Status check_memory(const Plan& plan, const std::vector<MemoryLimit>& limits);

}  // namespace collage
