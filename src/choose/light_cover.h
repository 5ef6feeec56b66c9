// The cover where the toolchain is determined: what FuseOps and the partition_for_<toolchain>
// functions of other compilers do, with no search over boundaries and no measurement.
//
//   boundaries   the largest candidates that fit together (partition/lightweight.h)
//   variants     those whose costs are known compete by them; of the others the backend's first is
//                preferred, unless a later one saves a change of layout
//   trust        what was never measured is tried once, in a worker: it must compile and compute
//                right; what does not is passed over for smaller kernels, in the end for the host's
//
// Trials are kept in the cost database, so they happen once. The program is checked as a whole
// before it is used (cover_checks.h); where it is wrong, the cover is found again without the
// kernel that is to blame (culprits.h).
#pragma once

#include <map>
#include <string>

#include "choose/cover_search.h"

namespace collage {

// One toolchain besides the host: there is nothing to choose.
bool is_determined(const std::vector<PartitionSpecPtr>& specs);

struct LightCover {
  std::vector<CostedCandidate> candidates;  // those that were looked at
  NamedCover cover;
  bool measured = false;  // all of its costs are known, its prediction means something
  std::vector<std::shared_ptr<Kernel>> kernels;  // of the cover, compiled
};

struct LightOptions {
  CompileOptions compile;
  VariantDemands demands;
  KernelCompiler compile_kernel;
  // Kernels that whole programs turned out to be wrong by (kernel_text): why.
  std::map<std::string, std::string> refused = {};
};

// `progress` may be null.
Result<LightCover> find_light_cover(const DataflowGraph& graph,
                                    std::vector<CandidatePartition> candidates,
                                    MeasuredCosts& costs, const LightOptions& options,
                                    Progress* progress);

}  // namespace collage
