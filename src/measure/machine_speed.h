// How fast this machine is, in a fraction of a second: what scales estimates of kernels that were
// measured on another one (cost/kernel_estimates.h).
#pragma once

namespace collage {

// Of all threads together, each a rate a second; 0: not known. Caches are taken to be as fast as
// arithmetic is.
struct MachineSpeed {
  double float32 = 0;  // multiply-adds of the widest vectors, counted as two
  double memory = 0;   // bytes read from memory
};

// Takes at most a second. The best of some moments: what disturbs a probe only makes it slower.
MachineSpeed probe_machine(int threads);

}  // namespace collage
