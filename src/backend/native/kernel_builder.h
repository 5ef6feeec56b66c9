// From a function and one of its variants to a scheduled Halide pipeline and the buffers it takes.
// An anchor's template builds its part; what stands in front of it is read through an access
// function, what follows is its epilogue. Other groups are emitted as a tensor program and
// translated.
#pragma once

#include <string>
#include <vector>

#include "backend/native/translate.h"
#include "backend/variant.h"
#include "runtime/updating_kernel.h"

namespace collage::native {

struct BuiltKernel {
  Halide::Pipeline pipeline;
  std::vector<Binding> bindings;                     ///< arguments in order, before the results
  std::vector<std::vector<int64_t>> result_extents;  ///< innermost first
  std::vector<Halide::Type> result_types;
  bool checked = false;  ///< the code checks, before it runs, that it stays inside its buffers
  bool calls_library = false;                  ///< a stage is an external function
  std::vector<Halide::Argument> symbols = {};  ///< numbers that the code takes behind the bindings,
  std::vector<int32_t> symbol_values = {};     ///< and which
  std::string program = {};  ///< of what is compiled for any of them: its text, else empty
  std::vector<UpdatingKernel::Update> updates = {};
};

/// May throw Halide's exceptions.
Result<BuiltKernel> build_kernel(const Function& function, const Variant& variant, int threads);

/// A pipeline that copies a tensor from one layout to another.
BuiltKernel build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to);

}  // namespace collage::native
