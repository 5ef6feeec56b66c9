// The last stage of a compilation: what the report says of a decision.
#pragma once

#include "compiler/decision.h"

namespace collage {

// Phases are left out: the report is one of them.
Result<CompileReport> report_decision(const Candidates& candidates, const Decision& decision,
                                      CompileContext& context);

// Returns the module with the cover's kernels, each of which states its target and its variant
// (partition/stated_kernels.h): compiled again, it is the same plan.
Result<Module> partitioned_by(const NamedCover& cover, const std::vector<CostedCandidate>& costed,
                              const Candidates& candidates);

}  // namespace collage
