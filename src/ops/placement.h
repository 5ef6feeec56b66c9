// on_device(x, device="gpu"): x itself, with the wish that what computes it runs on that device.
// Partitioning reads it (partition/gather.h); to everybody else it is a view that changes nothing.
#pragma once

namespace collage {

void register_placement_ops();

}  // namespace collage
