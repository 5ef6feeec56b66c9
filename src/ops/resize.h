// The computation of one axis of image.resize…d, for its kernel and for backends: each output
// position is a weighted sum of input positions, and an n-dimensional resize is the product of its
// axes.
#pragma once

#include <optional>
#include <vector>

#include "ir/expr.h"

namespace collage {

struct ResizeTap {
  int64_t source;
  double weight;
};
// The taps of each output position; empty for the extrapolation value (tf_crop_and_resize).
using ResizeAxis = std::vector<std::vector<ResizeTap>>;

// Returns axis `dim` (0 is the first spatial one) of a call on data of extent `input`.
ResizeAxis resize_axis(const Attrs& attrs, size_t dim, size_t spatial, int64_t input);

// Returns how often the call repeats each pixel along each spatial dimension: pixel i of its result
// is pixel i / factor of its data. None if it does anything else.
std::optional<Ints> repeat_factors(const CallNode& call);

}  // namespace collage
