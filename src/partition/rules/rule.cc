#include "partition/rules/rule.h"

namespace collage {

IndexSet with_tuple_arguments(const DataflowGraph& graph, IndexSet inside) {
  for (size_t i : inside.elements())
    for (PostDfsIndex input : graph.node(i).inputs)
      if (node_role(graph, input) == NodeRole::kTuple) inside.insert(input);
  return inside;
}

}  // namespace collage
