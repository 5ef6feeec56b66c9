// From a group and a variant to a scheduled Halide pipeline and the buffers it takes.
#pragma once

#include <string>
#include <vector>

#include "backend/native/kernel_group.h"
#include "backend/native/translate.h"
#include "backend/variant.h"

namespace collage::native {

struct BuiltKernel {
  Halide::Pipeline pipeline;
  std::vector<Binding> bindings;                     ///< arguments in order, before the results
  std::vector<std::vector<int64_t>> result_extents;  ///< innermost first
  std::vector<Halide::Type> result_types;
  bool checked = false;  ///< the code checks, before it runs, that it stays inside its buffers
};

/// The ways to compute the function, best guess first, at most about four; besides, where
/// `external`, those in which a function of a library is a stage.
Result<std::vector<Variant>> kernel_variants(const Function& function, int threads, bool external);

/// More ways, which halve the bytes that a product for few rows is made of: weights in bfloat16.
Result<std::vector<Variant>> lowered_kernel_variants(const Function& function, int threads);

/// May throw Halide's exceptions.
Result<BuiltKernel> build_kernel(const Function& function, const Variant& variant, int threads);

/// A pipeline that copies a tensor from one layout to another.
BuiltKernel build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to);

}  // namespace collage::native
