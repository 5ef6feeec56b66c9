// How the kChannels micro-kernel of the direct convolution divides channels: output channels in
// blocks of 16 lanes, a group's input channels in `cb` blocks of `ci`. What packs weights, what
// chooses schedules and what builds the kernel must agree on it.
#pragma once

#include "backend/native/templates/conv_problem.h"

namespace collage::native {

/// The largest divisor of `n` that is no greater than `limit`.
int64_t largest_divisor(int64_t n, int64_t limit);

/// `groups` counts groups after small ones were joined into block-diagonal groups of 16 channels.
struct ConvBlocking {
  bool ok = false;  ///< else the groups do not divide into blocks
  bool diagonal = false;
  int64_t groups = 1, group_in = 1, group_out = 1;  ///< channels per (joined) group
  int64_t ci = 1, cb = 1;  ///< reduction: cb blocks, or equal parts of them, of ci input channels
  int64_t kb = 1;          ///< blocks of output channels, all groups
};

ConvBlocking conv_blocking(const ConvProblem& problem);

}  // namespace collage::native
