// The order of steps where several devices compute: each is given its work as early as it can be,
// and the host waits for results as late as it can, so that branches on different devices run side
// by side.
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace collage {

// Positions of the plan's steps, in the order to run them in: what writes a buffer stays before
// what reads it, and among steps that may come next, in this order,
//
//   those that run on another device than the host, or write its memory,
//   those that such a step waits for,
//   those on the host,
//   those that read a device's memory on the host: they wait for the device;
//
// and among equals as they stand. Every buffer is written once.
std::vector<size_t> overlapped_order(const Plan& plan);

}  // namespace collage
