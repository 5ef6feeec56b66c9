// A model compiled by OpenVINO's CPU plugin, as a kernel. One inference request serves all its
// runs; the caller's buffers are bound to it when their addresses change.
//
// It computes with TBB's threads: `run` must be called with the team parked (the executor
// does).
#pragma once

#include <memory>
#include <openvino/openvino.hpp>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/tensor_type.h"

namespace collage::openvino {

// Returns the process's OpenVINO, made when first needed; never destroyed, since its plugins'
// threads may outlive static objects. Fails if the library or its CPU plugin cannot be loaded.
Result<ov::Core*> shared_core();

// Returns whether this processor multiplies bfloat16 in hardware.
bool has_bf16();

// Returns the settings of compiling and importing. With `precision` bf16 the plugin decides which
// intermediate results it keeps in bfloat16.
ov::AnyMap compile_settings(ov::element::Type precision, int threads);

// The source of a result leaf. OpenVINO computes most; the kernel copies a leaf that is just a
// parameter, a constant or another result.
struct ResultSource {
  enum class Kind { kComputed, kParameter, kConstant, kResult };
  Kind kind = Kind::kComputed;
  size_t index = 0;  // of the model's output, the parameter or the other result leaf
  SharedBytes constant = {};
};

// A parameter that is read as indices (runtime/index_check.h).
struct IndexCheck {
  size_t parameter;
  std::vector<int64_t> extents;
};

struct CompiledFunction {
  // The blob that the model was imported from, whose weights it reads in place; empty for one that
  // was compiled here.
  SharedBytes blob = {};
  ov::CompiledModel model;  // empty when no result is computed
  ov::element::Type precision = ov::element::f32;
  std::vector<TensorType> inputs, outputs;
  std::vector<ResultSource> results;
  std::vector<IndexCheck> checks;
  size_t constant_bytes = 0;
};

// May throw what OpenVINO throws.
std::unique_ptr<Kernel> make_kernel(CompiledFunction function);

}  // namespace collage::openvino
