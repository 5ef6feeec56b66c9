// The text form of patterns, for people and for configuration files; docs/patterns.md has the
// grammar. The text of DFPattern::to_string parses back, except conditions in C++ (`where`).
//
//   is_op('nn.relu')(*)
//   is_op('add')(is_op('nn.conv2d')(*, is_constant()), is_constant()) | is_op('nn.conv2d')(*, *)
//   is_op('nn.conv2d')(*, *).where(groups == 1).optional(is_op('nn.relu')(_))
//   is_op('multiply')($x, is_op('sigmoid')($x))
//
// Operators (those already registered) and their attributes must exist. An error (kUsage) names the
// column, from 1, and what was expected.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ir/pattern.h"
#include "ir/pattern_reader.h"

namespace collage {

Result<DFPattern> parse_pattern(std::string_view text);
// Reads a pattern from the current token on, up to what cannot follow in one.
Result<DFPattern> read_pattern(PatternReader& reader);
// Returns whether a pattern may begin with that name.
bool is_pattern_word(std::string_view word);

}  // namespace collage
