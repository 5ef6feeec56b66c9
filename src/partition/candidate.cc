#include "partition/candidate.h"

#include <algorithm>

namespace collage {

Function CandidatePartition::function(const DataflowGraph& graph, ConstantsInside constants) const {
  Attrs attrs{{"Primitive", int64_t{1}}};
  if (!spec->compiler.empty()) attrs.set("Compiler", spec->compiler);
  return sub_graph.extract(graph, std::move(attrs), constants);
}

size_t count_truncated(const std::vector<CandidatePartition>& candidates) {
  return static_cast<size_t>(
      std::count_if(candidates.begin(), candidates.end(),
                    [](const CandidatePartition& candidate) { return candidate.truncated; }));
}

}  // namespace collage
