#include "partition/rules/pattern_table.h"

#include "partition/rules/composite.h"
#include "partition/rules/union_rule.h"

namespace collage {

PartitionRulePtr make_pattern_rule(std::string name, std::vector<PatternRow> rows,
                                   std::vector<PartitionRulePtr> more) {
  std::vector<PartitionRulePtr> rules;
  for (PatternRow& row : rows) {
    auto rule = std::make_shared<DFPatternPartitionRule>(row.name, std::move(row.pattern),
                                                         std::move(row.predicate), row.config);
    rules.push_back(std::make_shared<CompositePartitionRule>(row.name, std::move(rule)));
  }
  rules.insert(rules.end(), more.begin(), more.end());
  return std::make_shared<UnionPartitionRule>(std::move(name), std::move(rules));
}

}  // namespace collage
