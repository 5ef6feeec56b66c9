// Where functions of ATen that allocate their result put it: into memory that is there already.
// Some have no form that writes into a given array but one that copies. While such a function runs,
// the first allocation on its thread of the result's size gets the destination's memory; in nearly
// all functions that is the result. Where it was not (the result lies elsewhere), it is copied.
#pragma once

#include <ATen/core/Tensor.h>

namespace collage::torch_plugin {

namespace internal {

// While it lives, the calling thread's next allocation of so many bytes lies there.
class NextAllocation {
 public:
  NextAllocation(void* memory, size_t bytes);
  ~NextAllocation();
  NextAllocation(const NextAllocation&) = delete;
  NextAllocation& operator=(const NextAllocation&) = delete;
};

void copy_unless_there(const at::Tensor& made, at::Tensor& out);

}  // namespace internal

// `out`, which is dense, becomes what `function` gives.
template <typename F>
void write_to(at::Tensor& out, F&& function) {
  at::Tensor made;
  {
    const internal::NextAllocation here(out.data_ptr(), out.nbytes());
    made = function();
  }
  internal::copy_unless_there(made, out);
}

}  // namespace collage::torch_plugin
