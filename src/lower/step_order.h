// Orders a plan's steps if several devices compute (search/device_steps.h).
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace collage {

// Returns positions of the plan's steps, in the order to run them in: writers of a buffer stay
// before its readers. Every buffer is written once. Those with effects stay in their order.
std::vector<size_t> overlapped_order(const Plan& plan);

}  // namespace collage
