// The last stage of a compilation: what the report says of a decision.
#pragma once

#include "compiler/decision.h"

namespace collage {

// Phases are left out: the report is one of them.
Result<CompileReport> report_decision(const Candidates& candidates, const Decision& decision,
                                      CompileContext& context);

// The module, its kernels stated as a cover has them (partition/stated_kernels.h).
Result<Module> stated_by(const NamedCover& cover, const std::vector<CostedCandidate>& costed,
                         const Candidates& candidates);
// The module, partitioned as a cover says.
Result<Module> partitioned_by(const NamedCover& cover, const std::vector<CostedCandidate>& costed,
                              const Candidates& candidates);

}  // namespace collage
