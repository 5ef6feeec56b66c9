// Constants of the process's programs, equal ones once. Whoever makes a large constant that it will
// not write again (packed weights, an initialiser) asks here for what to keep: a constant of the
// same bytes that a living program or model holds already, or else its own, which others are given
// from then on. So two programs of one model share whatever their kernels keep in the same form.
//
// Nothing is kept alive here: a constant goes with the last who holds it.
#pragma once

#include <collage/tensor.h>

#include <cstddef>

#include "runtime/saved_kernel.h"

namespace collage {

// Smaller ones are given back as they are.
inline constexpr size_t kLeastSharedBytes = size_t{64} << 10;

// For kernels. `bytes` are aligned and readable beyond their end, as SharedBytes are; so is what
// comes back.
SharedBytes shared_constant(SharedBytes bytes);

// For tensors of a model. Its storage must be nobody else's to write. What lies in a mapped file is
// given back as it is, and what is not aligned.
Tensor shared_constant(Tensor tensor);

// While it lives, what this thread asks to share stays its own: kernels that are timed against one
// another must not find in the caches what a rival read.
class ConstantsApart {
 public:
  ConstantsApart();
  ~ConstantsApart();
  ConstantsApart(const ConstantsApart&) = delete;
  ConstantsApart& operator=(const ConstantsApart&) = delete;
};

}  // namespace collage
