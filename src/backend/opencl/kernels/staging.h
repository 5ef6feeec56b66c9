// Host memory that tensors pass through on their way to a device that is busy, so that the host
// does not wait for it: a copy is made, and written when the device's queue comes to it. The memory
// is a mapped buffer object of the device's context, which drivers pin, so that they write from it
// without a copy of their own.
#pragma once

#include <mutex>
#include <vector>

#include "backend/opencl/kernels/device.h"

namespace collage::opencl {

class Staging {
 public:
  explicit Staging(const Device& device) : device_(device) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Begins to write to the object from offset `begin` on; `from` may change at once. False: there
  /// is no room, nothing was begun.
  Result<bool> write(cl_mem to, size_t begin, const void* from, size_t bytes);

 private:
  struct Block {
    cl_mem buffer = nullptr;
    void* mapped = nullptr;
    size_t bytes = 0;
    cl_event last = nullptr;  // the write that reads it; null: none
  };
  /// An idle one that is large enough; null: there is none, and no room for another.
  Result<Block*> idle_block(size_t bytes);

  const Device& device_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  size_t bytes_ = 0;  // of all blocks
};

}  // namespace collage::opencl
