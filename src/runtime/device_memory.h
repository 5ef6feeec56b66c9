// DeviceMemory: memory that the host may not access: of another device, or of a scope on it. Each
// virtual device but the host's has one, which the backend that computes there registers.
//
// Addresses are used like the host's: an allocation is aligned to 64 bytes, and an address inside
// it is its begin plus an offset. Only kernels of that device and the functions here may
// dereference them. Work on a device is done in the order in which it was begun. A call may return
// before its work is done, unless stated otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Allocates at least one byte, contents undefined. kUnavailable: the device has no room for it.
  virtual Result<std::shared_ptr<void>> allocate(size_t bytes) = 0;
  // Copies from the host's memory, which may change once it returns.
  virtual Status write(void* to, const void* from, size_t bytes) = 0;
  // Copies into the host's memory, after all work begun before.
  virtual Status read(void* to, const void* from, size_t bytes) = 0;
  // Waits for all work that was begun; returns an error of it, if there was one.
  virtual Status synchronise() = 0;
};

// Registers memory for the rest of the process. Registering a device again replaces its memory.
void register_device_memory(const VirtualDevice& device, std::shared_ptr<DeviceMemory> memory);
// Returns null for the host, and for a device that is not registered.
DeviceMemory* find_device_memory(const VirtualDevice& device);
// Returns the memory, or an error that names the device.
Result<DeviceMemory*> require_device_memory(const VirtualDevice& device);

// Returns addresses that stand for `bytes` of a device's memory: an access from the host faults.
Result<std::shared_ptr<void>> reserve_addresses(size_t bytes);

}  // namespace collage
