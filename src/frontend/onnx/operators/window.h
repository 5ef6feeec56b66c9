// The sliding windows of convolutions and pools: attributes with defaults, checked, and automatic
// padding turned into numbers.
#pragma once

#include <string>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

struct Window {
  Ints kernel, strides, dilations;
  Ints padding;  // all begins, then all ends
  std::string auto_pad;

  size_t rank() const { return kernel.size(); }
  // The extent of the kernel with its dilation.
  int64_t span(size_t dim) const { return (kernel[dim] - 1) * dilations[dim] + 1; }
  // Pads a dimension by so many elements as SAME_UPPER (an odd one behind) or SAME_LOWER say.
  void pad_same(size_t dim, int64_t total);
};

// For data of shape (N, C, spatial…). `kernel` is the default for a node without kernel_shape
// (empty: the attribute is required). Padding for SAME_* is computed for a window that slides over
// the data.
Result<Window> read_window(const NodeContext& node, const Shape& data, const Ints& kernel);

// "nn.conv" and 2 give "nn.conv2d"; unsupported beyond 3 dimensions.
Result<std::string> op_of_rank(const std::string& stem, size_t spatial,
                               const std::string& tail = "");

}  // namespace collage::frontend
