// The tensors of a Scan node: which inputs are carried from step to step and which are scanned,
// along which axes and in which direction.
#pragma once

#include <collage/tensor.h>
#include <onnx/onnx-ml.pb.h>

#include <vector>

#include "base/result.h"

namespace collage::frontend {

inline constexpr int64_t kScanWithoutBatch = 9;  // the operator set since which it is this Scan

struct ScanLayout {
  size_t carried = 0, scanned = 0, stacked = 0;  // states; scanned inputs; stacked outputs

  // kBadModel: node and body do not fit each other.
  static Result<ScanLayout> of(const ::onnx::NodeProto& node, const ::onnx::GraphProto& body);

  // Returns the number of steps, which all scanned inputs (by their shapes) must share.
  Result<int64_t> length(const std::vector<Shape>& shapes) const;
  Result<int64_t> input_axis(size_t scanned_input, const Shape& shape) const;
  // Returns which slice of a scanned input a step reads.
  int64_t position(size_t scanned_input, int64_t step, int64_t length) const {
    return input_backwards_[scanned_input] != 0 ? length - 1 - step : step;
  }
  int64_t output_axis(size_t stacked_output) const { return output_axes_[stacked_output]; }
  bool output_backwards(size_t stacked_output) const {
    return output_backwards_[stacked_output] != 0;
  }

 private:
  std::vector<int64_t> input_axes_, output_axes_, input_backwards_, output_backwards_;
};

}  // namespace collage::frontend
