// Which kernels of a wrong cover are to blame: those whose own results are wrong on the reference's
// inputs (layerwise.h); where there is none, so that errors add up, those that round most.
#pragma once

#include <string>
#include <vector>

#include "choose/cover_search.h"
#include "verify/reference_check.h"

namespace collage {

// As kernel_text says them; none where nothing can be blamed.
Result<std::vector<std::string>> find_culprits(const NamedCover& cover,
                                               const std::vector<CostedCandidate>& candidates,
                                               const LoweredPlan& lowered,
                                               ReferenceCheck& reference,
                                               const CompileOptions& options);

}  // namespace collage
