// What decides shapes by values: positions, boxes and distinct slices that are chosen when a model
// runs. Here each is a list; operators (non_zero.cc, unique.cc, non_max_suppression.cc) give it
// padded to the most that there can be, beside how many there are.
#pragma once

#include <collage/tensor.h>

#include <vector>

#include "base/result.h"

namespace collage {

// Returns an int64 tensor (rank, count): a column for each element that is not zero, in row-major
// order, with its index, by the definition of ONNX's NonZero. NaN is not zero. A scalar counts as a
// list of one element, as in ONNX Runtime.
Result<Tensor> find_non_zero(const Tensor& data);

struct EqualSlices {
  std::vector<int64_t> first;   // of each group, its first slice
  std::vector<int64_t> counts;  // of each group, how many slices
  std::vector<int64_t> of;      // of each slice, its group
};

// The groups of equal slices along an axis of at least one dimension: in ascending order of the
// slices, or in the order in which they appear. Zeros of both signs are equal, and so are all NaN,
// which sort behind the numbers, as in NumPy. kUnsupported: too many slices of no elements.
Result<EqualSlices> find_equal_slices(const Tensor& data, int64_t axis, bool sorted);

struct BoxLimits {
  int64_t count = 0;      // of the boxes of one class
  float overlap = 0;      // beyond it a box is dropped
  bool by_score = false;  // only scores above `score` count
  float score = 0;
};

// Boxes by falling score, without those that overlap one chosen before by more than a threshold;
// for each batch and class: a list of boxes' numbers for each, batches first. `boxes`: float32
// (batch, box, 4), opposite corners (y, x, y, x), or with `centers` (x, y, width, height);
// `scores`: float32 (batch, class, box). kBadModel: shapes or the overlap do not fit.
Result<std::vector<std::vector<int64_t>>> choose_boxes(const Tensor& boxes, const Tensor& scores,
                                                       const BoxLimits& limits, bool centers);

}  // namespace collage
