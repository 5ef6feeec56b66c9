// Shares equal constants of the process's programs. Code that makes a large constant which it will
// not write again (packed weights, an initialiser) calls this and keeps the result: a constant of
// the same bytes that a living program or model holds already, or its own, which later callers get.
// So two programs of one model share what their kernels keep in the same form.
//
// Nothing is kept alive here: a constant is freed with its last holder.
#pragma once

#include <collage/tensor.h>

#include <cstddef>

#include "runtime/saved_kernel.h"

namespace collage {

// Smaller constants are returned unchanged.
inline constexpr size_t kLeastSharedBytes = size_t{64} << 10;

// For kernels. `bytes` and the result are aligned and readable beyond their end, as SharedBytes
// are.
SharedBytes shared_constant(SharedBytes bytes);

// For tensors of a model, whose storage must have no other writer. Tensors in a mapped file, and
// tensors that are not aligned, are returned unchanged.
Tensor shared_constant(Tensor tensor);

// While it exists, this thread's constants are not shared: kernels that are timed against one
// another must not find in the caches what a rival read.
class ConstantsApart {
 public:
  ConstantsApart();
  ~ConstantsApart();
  ConstantsApart(const ConstantsApart&) = delete;
  ConstantsApart& operator=(const ConstantsApart&) = delete;
};

}  // namespace collage
