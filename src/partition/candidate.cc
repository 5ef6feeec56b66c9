#include "partition/candidate.h"

namespace collage {

Function CandidatePartition::function(const DataflowGraph& graph, ConstantsInside constants) const {
  Attrs attrs{{"Primitive", int64_t{1}}};
  if (!spec->compiler.empty()) attrs.set("Compiler", spec->compiler);
  return sub_graph.extract(graph, std::move(attrs), constants);
}

}  // namespace collage
