// Which sub-graphs native offers to compute: every call it knows, alone; an anchor with the
// element-wise chain after it and with what can be folded into reading its operands; and the
// largest groups without an anchor.
#pragma once

#include "partition/rules/rule.h"

namespace collage::native {

PartitionRulePtr make_native_rule();

}  // namespace collage::native
