// A function compiled by OpenVINO's CPU plugin. One inference request serves all runs; the caller's
// buffers are bound to it when their addresses change.
//
// It computes with TBB's threads: `run` must be called with the OpenMP team parked (the executor
// does).
#pragma once

#include <memory>

#include "backend/openvino/translate.h"
#include "runtime/kernel.h"

namespace collage::openvino {

// The process's OpenVINO, made when first needed; never destroyed, since its plugins' threads may
// outlive static objects. Fails where the library or its CPU plugin cannot be loaded.
Result<ov::Core*> shared_core();

// Whether this processor multiplies bfloat16 in hardware.
bool has_bf16();

// With `precision` bf16 the plugin keeps what it computes inside in bfloat16 where it sees fit.
Result<std::unique_ptr<Kernel>> compile_kernel(const Function& function,
                                               ov::element::Type precision, int threads);

}  // namespace collage::openvino
