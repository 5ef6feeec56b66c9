// The kernel of a recurrent layer: each thread has panels of its own (steps.h) of both directions,
// and waits for the others after each step.
#pragma once

#include <memory>

#include "backend/recurrent/kernels/steps.h"
#include "runtime/kernel.h"

namespace collage::recurrent {

/// The kernel's inputs are the data and those states that are no constants.
struct LayerCode {
  Layer layer;
  bool wide = false;   ///< by AVX-512, if this processor has it
  SharedBytes packed;  ///< layer.packed_floats(), in the order of panels
  SharedBytes h0, c0;  ///< (directions, batch, hidden); empty: the next input; c0 of nn.lstm alone
};

/// kUnavailable: this processor lacks AVX2.
Result<std::unique_ptr<Kernel>> make_layer_kernel(LayerCode code, int threads);

}  // namespace collage::recurrent
