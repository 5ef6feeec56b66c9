// DeviceMemory: memory that the host may not touch: of another device, or of a scope on it. Each
// virtual device but the host's has one, which the backend that computes there registers.
//
// Addresses are used like the host's: an allocation is aligned to 64 bytes, and an address inside
// it is its begin and an offset. Only kernels of that device and the functions here may follow
// them. Work on a device is done in the order in which it was begun, and a call may return before
// it is done, if it says nothing else.
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
  // At least one byte, contents undefined. kUnavailable: the device has no room for it.
  virtual Result<std::shared_ptr<void>> allocate(size_t bytes) = 0;
  // From the host's memory, which may change once it returns.
  virtual Status write(void* to, const void* from, size_t bytes) = 0;
  // Into the host's memory, once all that was begun before is done.
  virtual Status read(void* to, const void* from, size_t bytes) = 0;
  // Waits for all that was begun; an error of it, if there was one.
  virtual Status synchronise() = 0;
};

// Lives for the rest of the process. Registering a device again replaces its memory.
void register_device_memory(const VirtualDevice& device, std::shared_ptr<DeviceMemory> memory);
// Null for the host's, and where nobody registered one.
DeviceMemory* find_device_memory(const VirtualDevice& device);
// The memory, or an error that names the device.
Result<DeviceMemory*> require_device_memory(const VirtualDevice& device);

// Addresses that stand for `bytes` of a device's memory: an access from the host kills the process.
Result<std::shared_ptr<void>> reserve_addresses(size_t bytes);

}  // namespace collage
