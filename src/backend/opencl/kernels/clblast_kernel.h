// A kernel of a library: a product, result = alpha * A · B, is one call of CLBlast, which begins it
// on the device's queue.
#pragma once

#include <memory>

#include "backend/gemm/kernels/product.h"
#include "runtime/kernel.h"

namespace collage::opencl {

/// Copies constants to device number `device`; the matrices of B the other way round where
/// `repacked`. The product has no addend.
Result<std::unique_ptr<Kernel>> make_clblast_kernel(gemm::Product product, bool repacked,
                                                    int device);
/// What loads it again.
KernelLoader clblast_loader();

}  // namespace collage::opencl
