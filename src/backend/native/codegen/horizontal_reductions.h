// Sums, maxima and such of elements that lie next to one another, as those of the lanes in which a
// reduction was computed:
//
//   max(max(part[0], part[8]), max(part[4], part[12]), …)      of 16 elements
//
// LLVM makes a chain of some, each waiting for the one before it. As one vector, halved until one
// lane is left, 16 elements are four steps.
#pragma once

#include <Halide.h>

namespace collage::native {

/// Has the pipeline compute reductions of 8 or more such real numbers like that.
void reduce_horizontally(Halide::Pipeline& pipeline);

}  // namespace collage::native
