#include "partition/candidate.h"

namespace collage {

Function CandidatePartition::function(const DataflowGraph& graph) const {
  return sub_graph.extract(graph, {{"Primitive", int64_t{1}}, {"Compiler", spec->target.kind}});
}

}  // namespace collage
