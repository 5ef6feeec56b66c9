// Copies tensors from one device's memory to another's, byte for byte: between two encodings that
// differ in their device alone. `saved`: the kernel's description in an artifact.
#pragma once

#include <memory>

#include "runtime/encoding.h"
#include "runtime/kernel.h"
#include "runtime/saved_kernel.h"

namespace collage {

Result<std::unique_ptr<Kernel>> make_transfer_kernel(const TensorType& type, const Encoding& from,
                                                     const Encoding& to, SavedKernel saved);

}  // namespace collage
