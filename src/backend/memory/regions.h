// A join or a cut as consecutive regions of a whole, and their places in it.
#pragma once

#include <collage/tensor.h>

#include "ir/expr.h"
#include "runtime/kernel.h"
#include "runtime/layout.h"

namespace collage::memory {

struct Region {
  int64_t begin = 0, extent = 0;  ///< along the axis
};

struct Regions {
  InPlace::Part part = InPlace::Part::kInput;  ///< kInput: a join; kOutput: a cut
  TensorType whole;
  size_t axis = 0;
  std::vector<Region> regions;  ///< in the order of the call's fields or results
};

/// Reads a call of concatenate, split or strided_slice; or returns why it has none.
Result<Regions> read_regions(const CallNode& call);

/// Bytes from the whole's begin to a region and bytes of the region, if every region is contiguous
/// and begins where a buffer may.
struct Run {
  size_t offset = 0, bytes = 0;
};
Result<std::vector<Run>> runs_in(const Regions& regions, const Layout& layout);

}  // namespace collage::memory
