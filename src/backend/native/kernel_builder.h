// The builders of kernel_table.h's rows. kernel_builder.cc: an anchor's template builds its part of
// the pipeline; what stands in front of it is read through an access function, what follows is its
// epilogue. program_kernels.cc: tensor programs, emitted or given, planned, scheduled, translated.
#pragma once

#include "backend/native/kernel_table.h"

namespace collage::native {

Result<BuiltKernel> convolution_kernel(const Request& request);
Result<BuiltKernel> product_kernel(const Request& request);
Result<BuiltKernel> attention_kernel(const Request& request);

/// By the schedule of stages that the request says (stages/stage_choices.h).
Result<BuiltKernel> stage_kernel(const Request& request);
/// The same with products of integers (integers/integer_products.h).
Result<BuiltKernel> integer_kernel(const Request& request);
/// A user's program alone, by the schedule that it brings, or a plain one.
Result<BuiltKernel> program_kernel(const Request& request);
/// Over symbols (symbolic/symbolic_kernel.h).
Result<BuiltKernel> symbolic_kernel(const Request& request);

/// A pipeline that copies a tensor from one layout to another.
Result<BuiltKernel> build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to);

}  // namespace collage::native
