// Offers the calls whose parts can lie in the whole, each alone.
#pragma once

#include "partition/rules/rule.h"

namespace collage::memory {

/// Offers every cut, and joins whose fields are tensors that kernels make: not parameters,
/// constants or results of the function, which lie elsewhere, nor parts of a cut, nor tensors that
/// an earlier join of the function holds.
PartitionRulePtr make_regions_rule();

}  // namespace collage::memory
