// The calls whose parts can lie in the whole, each alone.
#pragma once

#include "partition/rules/rule.h"

namespace collage::memory {

/// Of joins those whose fields are tensors that kernels make: not parameters, constants or results
/// of the function, which lie elsewhere, nor tensors that an earlier join of the function holds. Of
/// cuts those whose parts no join wants.
PartitionRulePtr make_pieces_rule();

}  // namespace collage::memory
