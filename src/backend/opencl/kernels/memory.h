// Memory of an OpenCL device. An allocation is a buffer object and a range of addresses that stand
// for its bytes (runtime/device_memory.h); kernels get what lies at an address as a buffer of its
// own, a part of the allocation's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/opencl/kernels/device.h"
#include "backend/opencl/kernels/staging.h"
#include "runtime/device_memory.h"

namespace collage::opencl {

class Memory : public DeviceMemory {
 public:
  explicit Memory(const Device& device) : device_(device), staging_(device) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<std::shared_ptr<void>> allocate(size_t bytes) override;
  Status write(void* to, const void* from, size_t bytes) override;
  Status read(void* to, const void* from, size_t bytes) override;
  Status synchronise() override;

  /// What kernels take for `bytes` from that address on. It lives as long as the allocation.
  Result<cl_mem> buffer(const void* address, size_t bytes);

  /// Memory that one kernel after the other uses, since the queue is in order: what was given back
  /// is taken again at once.
  Result<void*> take_scratch(size_t bytes);
  void give_back(void* scratch);

 private:
  struct Allocation {
    std::shared_ptr<void> addresses;
    size_t bytes = 0;
    cl_mem whole = nullptr;
    std::map<std::pair<size_t, size_t>, cl_mem> parts;  // by offset and size
  };
  struct Scratch {
    std::shared_ptr<void> memory;
    size_t bytes = 0;
  };
  /// The allocation and the offset into it. With the lock held.
  Result<std::pair<Allocation*, size_t>> find(const void* address, size_t bytes);
  /// The object that an address lies in, and the offset into it.
  Result<std::pair<cl_mem, size_t>> place(const void* address, size_t bytes);
  void release(void* begin);

  const Device& device_;
  Staging staging_;
  std::mutex mutex_;
  std::map<const void*, Allocation> allocations_;  // by the first address
  std::mutex scratch_mutex_;
  std::vector<Scratch> idle_, used_;
};

/// Memory of device `id` that opens the device when it is first asked for something.
std::shared_ptr<DeviceMemory> memory_of_device(int id);

}  // namespace collage::opencl
