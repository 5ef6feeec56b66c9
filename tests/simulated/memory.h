// Memory of a simulated accelerator. Its addresses stand for it (reserve_addresses): an access of
// the host's kills the process, so a program that runs to its end made none. What the device does
// is done when somebody waits for it, and no earlier.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/device_memory.h"

namespace collage::simulated {

class Queue {
 public:
  void add(std::function<Status()> work);
  // Does all that was added, in order; the first error of it.
  Status wait();

 private:
  std::recursive_mutex mutex_;
  std::vector<std::function<Status()>> work_;
};

class Memory : public DeviceMemory {
 public:
  // `capacity`: bytes that can be allocated at a time. `bytes_per_second`: of transfers; 0: any.
  Memory(VirtualDevice device, std::shared_ptr<Queue> queue, size_t capacity,
         double bytes_per_second)
      : device_(std::move(device)),
        queue_(std::move(queue)),
        capacity_(capacity),
        bytes_per_second_(bytes_per_second) {}

  Result<std::shared_ptr<void>> allocate(size_t bytes) override;
  Status write(void* to, const void* from, size_t bytes) override;
  Status read(void* to, const void* from, size_t bytes) override;
  Status synchronise() override { return queue_->wait(); }

  size_t capacity() const { return capacity_; }
  // Copies from and to the host so far.
  size_t copies() const { return copies_; }
  // What lies at an address of the device, for the device's own kernels; null: not of this memory.
  void* contents(const void* address, size_t bytes);

 private:
  struct Block {
    size_t bytes;
    std::unique_ptr<unsigned char[]> contents;
  };
  void pass(size_t bytes) const;

  const VirtualDevice device_;
  const std::shared_ptr<Queue> queue_;
  const size_t capacity_;
  const double bytes_per_second_;
  std::mutex mutex_;
  size_t used_ = 0;
  std::atomic<size_t> copies_{0};
  std::map<const char*, Block> blocks_;  // by the address that stands for it
};

}  // namespace collage::simulated
