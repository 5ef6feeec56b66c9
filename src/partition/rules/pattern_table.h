// A backend's pattern table as a rule: each row a named pattern with a predicate.
//
//   make_pattern_rule("onednn", {{"onednn.dense", is_op("nn.dense")(wildcard(), is_constant())},
//                                {"onednn.softmax", is_op("nn.softmax")(wildcard()), last_axis}});
#pragma once

#include "partition/rules/df_pattern.h"

namespace collage {

struct PatternRow {
  std::string name;  // also the "Composite" label
  DFPattern pattern;
  MatchPredicate predicate = {};
  SubGraphConfig config = {};
};

// Returns the union of one composite rule per row, then `more` (rules such as AnchorEpilogue,
// unlabelled).
PartitionRulePtr make_pattern_rule(std::string name, std::vector<PatternRow> rows,
                                   std::vector<PartitionRulePtr> more = {});

}  // namespace collage
