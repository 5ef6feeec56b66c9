// Plans of one kernel each, of the libraries that kernels may be of. Not of native and opencl:
// their descriptions say how compiled code is called, and can be checked no more than that code.
#pragma once

#include <vector>

#include "artifact/saved_plan.h"

namespace collage::fuzz {

// As the entry kPlanEntry, the first one. Those whose tensors lie row-major: their inputs are the
// caller's.
std::vector<SavedPlans> saved_library_plans();

}  // namespace collage::fuzz
