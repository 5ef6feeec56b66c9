// The words of a tensor program's text, and the constants that numbers among them stand for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/lexer.h"
#include "base/result.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// Returns all tokens of the text, the last of kind kEnd. An unclosed string ends with its line.
std::vector<Token> tokens_of(std::string_view text, TextPlace first = {});

/// Parses "0.5f", "3", "7i64", "inff", "5_uint8" as a constant; fails for anything else, and for
/// numbers that the type does not hold.
Result<Term> number_of(std::string text, bool negative);

}  // namespace collage::tensor_program
