// Values in a pattern's text: numbers, fusion kinds, and attributes' values. Each function reads
// from the current token on and passes what it read; `what` describes a number in messages.
#pragma once

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/pattern_reader.h"

namespace collage {

Result<double> parse_number(PatternReader& reader);
Result<int64_t> parse_integer(PatternReader& reader, std::string_view what);
Result<FusionKind> parse_fusion_kind(PatternReader& reader);
// Reads a string, True, False, None, a number, or a list of numbers or of lists of integers.
Result<AttrValue> parse_value(PatternReader& reader);

}  // namespace collage
