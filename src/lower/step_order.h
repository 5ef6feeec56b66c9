// The order of a plan's steps where several devices compute (search/device_steps.h).
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace collage {

// Positions of the plan's steps, in the order to run them in: what writes a buffer stays before
// what reads it. Every buffer is written once.
std::vector<size_t> overlapped_order(const Plan& plan);

}  // namespace collage
