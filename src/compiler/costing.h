// From targets to costed candidates: evaluates every target's rule on the graph, and asks for the
// cost of each distinct function once: candidates of equal structure share an answer, and all
// targets that may run the same sub-graph are measured together.
#pragma once

#include <memory>
#include <vector>

#include "compiler/progress.h"
#include "compiler/targets.h"
#include "cost/measured_costs.h"
#include "partition/candidate.h"

namespace collage {

struct CostedCandidate {
  CandidatePartition partition;
  Function function;  // extracted, flat
  std::shared_ptr<const TargetCosts>
      costs;  // null: not measured (the host's, until a cover needs them)
};

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  const std::vector<PartitionSpecPtr>& specs,
                                                  const TargetConstraints& constraints);

// Candidates of the host are returned without costs. `progress` may be null.
Result<std::vector<CostedCandidate>> cost_candidates(const DataflowGraph& graph,
                                                     std::vector<CandidatePartition> candidates,
                                                     MeasuredCosts& costs, Progress* progress,
                                                     size_t* distinct_functions);

// Work of a function by the operators' own estimates, for the analytic stand-in for costs nobody
// measured.
double function_flops(const Function& function);
// Constants and every intermediate tensor, in bytes: what one inference touches.
double working_set_bytes(const Function& function);
// Of one core, in bytes; what this machine does not tell counts as 1 MiB.
double private_cache_bytes();
double function_bytes(const Function& function);  // parameters, constants and results

}  // namespace collage
