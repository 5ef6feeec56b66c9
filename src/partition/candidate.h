// CandidatePartition: a sub-graph that some target might run as one kernel, the unit of search and
// measurement. PartitionSpec: a rule that finds candidates, and the target it finds them for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/target.h"
#include "partition/sub_graph.h"

namespace collage {

class PartitionRule;

// Specs that share a rule object share its candidates: gather_candidates (partition/gather.h)
// evaluates it once.
struct PartitionSpec {
  std::string name;  // usually the target's kind
  std::shared_ptr<const PartitionRule> rule;
  Target target;
  // The toolchain that compiles its kernels, for their "Compiler" attribute; empty for kernels that
  // the project generates itself.
  std::string compiler = {};
  bool is_host = false;        // its kernels stay in line: the host calls the operators one by one
  bool merges = false;         // it accepts touching kernels of its own as one
  std::string rule_text = {};  // of a rule that a user wrote (partition/rule_text.h)
};

struct CandidatePartition {
  std::string rule_name;  // which rule (pattern label) found it, for explanations
  SubGraph sub_graph;
  std::shared_ptr<const PartitionSpec> spec;
  // True if a limit of its rule (depth, operators, candidates per exit, siblings) stopped its
  // growth, so that larger candidates are missing.
  bool truncated = false;
  // Returns the extracted kernel function: Primitive=1, Compiler if the spec has one, and Composite
  // functions inside.
  Function function(const DataflowGraph& graph,
                    ConstantsInside constants = ConstantsInside::kAll) const;
};

// Counts candidates that limits stopped: the cheapest cover is cheapest among the found candidates.
size_t count_truncated(const std::vector<CandidatePartition>& candidates);

}  // namespace collage
