// Choosing by the clock: lowers the covers one after the other, checks each against the reference
// on real data, times challenger against champion end to end, and keeps the fastest. Results are
// cached under the set of covers, so a warm compile lowers only the winner.
#pragma once

#include "compiler/compile.h"
#include "compiler/cover_search.h"

namespace collage {

struct ChosenCover {
  size_t index = 0;  // into the covers
  LoweredPlan lowered;
  std::vector<TimedCover> timed;  // one a cover
};

struct ChooseOptions {
  int threads = 1;
  std::string model_key;  // identifies the model's structure and the environment
  bool frozen = false;
  // Where these covers were never timed, the first is taken as it is: its kernels were verified.
  bool untimed = false;
};

using Lower = std::function<Result<LoweredPlan>(const NamedCover&)>;

Result<ChosenCover> choose_cover(const DataflowGraph& graph, const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, CostDatabase& database,
                                 const ChooseOptions& options, Progress* progress);

}  // namespace collage
