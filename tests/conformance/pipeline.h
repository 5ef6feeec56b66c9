// A module through all that a compilation does after simplification, but for measuring: candidates,
// search, lowering, plan, executor. Costs are made up from the kernels' texts, the same on every
// machine: within a factor of three of one another, so that of several backends each gets a part
// of the kernels and tensors change layouts between them, and of the host a thousand times as much,
// so that it gets what nobody else takes. Nothing is tried before it is used: a kernel that
// computes wrong shows.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/module.h"

namespace collage {

struct PipelineRun {
  std::vector<Tensor> outputs;
  std::set<std::string> backends;  // of its kernels
};

// `targets` as ProgramOptions has them: empty are the default ones.
Result<PipelineRun> run_through_pipeline(const Module& module,
                                         const std::vector<std::string>& targets,
                                         const std::vector<Tensor>& inputs);

}  // namespace collage
