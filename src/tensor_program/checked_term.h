// Terms of operands that nobody has looked at, as text has them.
#pragma once

#include <vector>

#include "base/result.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// make_term(op, args) where the operation takes so many operands of these types; constants take
/// the type of what stands beside them.
Result<Term> checked_term(TermOp op, std::vector<Term> args);

}  // namespace collage::tensor_program
