// What oneDNN can take: the pattern table.
#pragma once

#include "partition/rules/rule.h"

namespace collage::onednn {

PartitionRulePtr pattern_table();

}  // namespace collage::onednn
