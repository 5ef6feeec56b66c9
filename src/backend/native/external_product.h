// A product whose sum is a call of a library function: a stage of the kernel's program that takes
// the operands (computed in front of it where they are expressions) and the bias, if one follows;
// the rest of the group is the result's term, as in a generic kernel.
//
//   stage product[d0:64, d1:96] = extern "cblas_sgemm_nt"(p0, c1, c2): float32;
//   result result0[axis1:64, axis0:96] = max(product[axis1, axis0], 0.0f);
#pragma once

#include <string>
#include <vector>

#include "backend/native/kernel_group.h"
#include "tensor_program/emitter.h"

namespace collage::native {

/// Labels of registered functions that can compute the group's anchor.
std::vector<std::string> external_products(const KernelGroup& group);

/// Adds stages and result, scheduled, to the emitter's program.
Status add_external_product(tensor_program::Emitter& emitter, const KernelGroup& group,
                            const std::string& label, int threads);

}  // namespace collage::native
