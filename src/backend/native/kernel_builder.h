// From a function and one of its variants to a scheduled Halide pipeline and the buffers it takes.
// An anchor's template builds its part; what stands in front of it is read through an access
// function, what follows is its epilogue. Other groups are emitted as a tensor program and
// translated.
#pragma once

#include "backend/native/codegen/built_kernel.h"
#include "backend/variant.h"

namespace collage::native {

/// May throw Halide's exceptions.
Result<BuiltKernel> build_kernel(const Function& function, const Variant& variant, int threads);

/// A pipeline that copies a tensor from one layout to another.
Result<BuiltKernel> build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to);

}  // namespace collage::native
