// Claims kernels in a module, by a toolchain's rule or by a pattern: each becomes a global function
// with Primitive=1, which no pass changes afterwards. Functions that are Primitive already stay, so
// claims of several toolchains and patterns follow one another, with any pass in between.
#pragma once

#include <string>

#include "backend/targets/targets.h"
#include "ir/module.h"
#include "ir/pattern.h"

namespace collage {

// Claims what the target takes of every function, the largest candidates that fit together, as
// functions with the Compiler that is its toolchain.
Result<Module> claim_for_target(const Module& module, const PartitionSpecPtr& spec,
                                const TargetConstraints& constraints);

// Claims every match of the pattern, larger ones first where they overlap, as a function with that
// Composite label and, unless it is empty, that Compiler.
Result<Module> claim_matches(const Module& module, const DFPattern& pattern,
                             const std::string& label, const std::string& compiler);

}  // namespace collage
