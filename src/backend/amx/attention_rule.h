// Candidates for attention: the call alone; with the transpose that follows it; and each with the
// operators that move its operands before it (transposes, slices, splits, views), if the kernel can
// read these in place.
#pragma once

#include "partition/rules/rule.h"

namespace collage::amx {

PartitionRulePtr make_attention_rule();

}  // namespace collage::amx
