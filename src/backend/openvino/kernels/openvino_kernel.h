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

// The process's OpenVINO, made when first needed; never destroyed, since its plugins' threads may
// outlive static objects. Fails where the library or its CPU plugin cannot be loaded.
Result<ov::Core*> shared_core();

// Whether this processor multiplies bfloat16 in hardware.
bool has_bf16();

// How models are compiled and imported. With `precision` bf16 the plugin keeps what it computes
// inside in bfloat16 where it sees fit.
ov::AnyMap compile_settings(ov::element::Type precision, int threads);

// Where a result leaf comes from. OpenVINO computes most; what is just a parameter, a constant or
// another result is copied by the kernel.
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
  // What the model was imported from, whose weights it reads where they lie; empty of one that was
  // compiled here.
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
