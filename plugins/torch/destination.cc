#include "destination.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace collage::torch_plugin {

namespace {

struct Place {
  void* memory = nullptr;
  size_t bytes = 0;
};
thread_local Place wanted;
thread_local void* given = nullptr;  // what was wanted and somebody has

c10::Allocator* usual = nullptr;

void free_unless_given(void* memory) {
  if (memory == given) {
    given = nullptr;
  } else {
    usual->raw_deleter()(memory);
  }
}

// ATen's allocator but for the memory that is wanted.
class DestinationAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (wanted.memory == nullptr || bytes != wanted.bytes) return usual->allocate(bytes);
    given = wanted.memory;
    wanted = {};
    return {given, given, free_unless_given, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free_unless_given; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    usual->copy_data(to, from, bytes);
  }
};

[[maybe_unused]] const bool installed = [] {
  constexpr uint8_t kBeforeOthers = 100;
  usual = c10::GetCPUAllocator();
  c10::SetCPUAllocator(new DestinationAllocator, kBeforeOthers);
  return true;
}();

}  // namespace

namespace internal {

NextAllocation::NextAllocation(void* memory, size_t bytes) { wanted = {memory, bytes}; }
NextAllocation::~NextAllocation() { wanted = {}; }

void copy_unless_there(const at::Tensor& made, at::Tensor& out) {
  if (made.data_ptr() != out.data_ptr()) {
    out.copy_(made);
  } else if (!made.is_contiguous(out.suggest_memory_format())) {
    out.copy_(made.clone());  // in another order
  }
}

}  // namespace internal

}  // namespace collage::torch_plugin
