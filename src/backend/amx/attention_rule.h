// Candidates for attention: the call alone; with the transpose that follows it; and, each time,
// with what brings its operands into their places before it (transposes, slices, splits, views), as
// far as the kernel can read them where they lie.
#pragma once

#include "partition/rules/rule.h"

namespace collage::amx {

PartitionRulePtr make_attention_rule();

}  // namespace collage::amx
