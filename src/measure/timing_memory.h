// The buffers that kernels are timed on: of the memory that programs run in (huge pages), unlike
// guarded buffers, and with writable inputs, which the timing writes to warm them. A pattern on
// both sides of each buffer still shows writes beside it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/guarded_buffer.h"

namespace collage {

class TimingMemory {
 public:
  // Returns 64-byte aligned zeros. `name` is for messages: "output 0".
  Result<void*> zeros(size_t bytes, const std::string& name);
  // Returns the same copy for the same buffer.
  Result<void*> copy_of(const std::shared_ptr<GuardedBuffer>& buffer, const std::string& name);
  // Checks that the patterns around a buffer, or the one that it is a part of, are whole.
  Status check(const void* data) const;

 private:
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes;
    std::string name;
  };
  std::map<const void*, Block> blocks_;
  std::map<const GuardedBuffer*, void*> copies_;
};

}  // namespace collage
