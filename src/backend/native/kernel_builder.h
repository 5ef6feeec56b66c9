// Kernels of templates, and of what is scheduled as it is emitted (generic_schedule.h). An anchor's
// template builds its part of the pipeline; what stands in front of it is read through an access
// function, what follows is its epilogue.
#pragma once

#include "backend/native/kernel_table.h"

namespace collage::native {

Result<BuiltKernel> convolution_kernel(const Request& request);
Result<BuiltKernel> product_kernel(const Request& request);
Result<BuiltKernel> attention_kernel(const Request& request);
Result<BuiltKernel> generic_kernel(const Request& request);

/// A pipeline that copies a tensor from one layout to another.
Result<BuiltKernel> build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to);

}  // namespace collage::native
