// The text of rules, for people: what a user writes for a target (docs/partitioning.md has the
// grammar).
//
//   convs = is_op('nn.conv2d')($x, $w: is_constant()).where($w.shape[0] % 8 == 0);
//   combine(union(composite('my.conv', convs), is_op_up_to('anchor')), max_depth: 4, max_splits: 1)
//
// An error (kUsage) names the column, from 1 (and the line, after the first), and what was
// expected.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "partition/rules/rule.h"

namespace collage {

struct RuleText {
  PartitionRulePtr rule;        // null: it uses own(), and there is none
  std::string text;             // as it prints, which parses back
  bool joins_anything = false;  // the target's kernels accept one another (PartitionSpec::merges)
};

// `own`: the spec of the target's backend, whose rule own() stands for. Operators must be
// registered.
Result<RuleText> parse_rule(std::string_view text, const PartitionSpec* own = nullptr);
// Of a text with a '(', else of the file of that name, relative to the folder.
Result<RuleText> read_rule(const std::string& given, const PartitionSpec* own = nullptr,
                           const std::filesystem::path& folder = {});
// Makes it the spec's.
void set_rule(PartitionSpec& spec, RuleText rule);

}  // namespace collage
