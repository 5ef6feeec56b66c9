// CandidatePartition: a sub-graph that some target might run as one kernel. All search and
// measurement is in these units. PartitionSpec: a rule that finds candidates, and the target it
// finds them for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/target.h"
#include "partition/sub_graph.h"

namespace collage {

class PartitionRule;

struct PartitionSpec {
  std::string name;  // usually the target's kind
  std::shared_ptr<const PartitionRule> rule;
  Target target;
};

struct CandidatePartition {
  std::string rule_name;  // which rule (pattern label) found it, for explanations
  SubGraph sub_graph;
  std::shared_ptr<const PartitionSpec> spec;
  // The extracted kernel function: Primitive=1, Compiler=<target kind> for every target, and
  // Composite functions inside.
  Function function(const DataflowGraph& graph) const;
};

}  // namespace collage
