// Operators as calls of ATen that write into an array which is there.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "ir/attrs.h"

namespace collage::torch_plugin {

// `out` has the result's shape and may be inputs[0] where the operator is element-wise. What ATen
// refuses it throws.
using Compute = void (*)(const std::vector<at::Tensor>& inputs, at::Tensor& out,
                         const Attrs& attrs);

// Null where there is none.
Compute find_compute(const std::string& op);

// A convolution and the vector that is added to its channels; undefined: none.
void convolve(const std::vector<at::Tensor>& inputs, const at::Tensor& bias, at::Tensor& out,
              const Attrs& attrs);

}  // namespace collage::torch_plugin
