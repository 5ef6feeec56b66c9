// The pattern table of what oneDNN can take.
#pragma once

#include "partition/rules/rule.h"

namespace collage::onednn {

PartitionRulePtr pattern_table();

}  // namespace collage::onednn
