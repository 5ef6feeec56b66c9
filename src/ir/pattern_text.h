// The text form of patterns, for people and for configuration files; docs/patterns.md has the
// grammar. What DFPattern::to_string prints parses back, but for conditions in C++ (`where`).
//
//   is_op('nn.relu')(*)
//   is_op('add')(is_op('nn.conv2d')(*, is_constant()), is_constant()) | is_op('nn.conv2d')(*, *)
//   is_op('nn.conv2d')(*, *){groups: 1}.optional(is_op('nn.relu')(_))
//   is_op('multiply')($x, is_op('sigmoid')($x))
//
// Operators (those registered by then) and their attributes must exist. An error (kUsage) names the
// column, from 1, and says what was expected.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ir/pattern.h"

namespace collage {

Result<DFPattern> parse_pattern(std::string_view text);

}  // namespace collage
