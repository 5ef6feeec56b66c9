// Elements read where a tensor of indices says (take): rows of an embedding. An index beyond the
// end reads the last element, where the reference reports an error: a device cannot.
#pragma once

#include "tensor_program/emit/emitter.h"

namespace collage::opencl {

bool is_lookup(const CallNode& call);
/// Why it cannot be computed, if so.
Status check_lookup(const CallNode& call);
tensor_program::Term lookup(tensor_program::Emitter& emitter, const CallNode& call,
                            const tensor_program::Coords& at);

}  // namespace collage::opencl
