// Makes terms of unchecked operands, as text has them.
#pragma once

#include <vector>

#include "base/result.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// Returns make_term(op, args) if the operation takes that many operands of these types; constants
/// take the type of the other operand.
Result<Term> checked_term(TermOp op, std::vector<Term> args);

}  // namespace collage::tensor_program
