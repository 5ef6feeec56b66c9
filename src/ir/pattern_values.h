// Values in a pattern's text: numbers, dtypes, shapes, types, and attributes' values. Each
// function reads from the current token on and passes what it read; `what` describes a number in
// messages.
#pragma once

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/pattern_reader.h"
#include "ir/type.h"

namespace collage {

Result<double> parse_number(PatternReader& reader);
Result<int64_t> parse_integer(PatternReader& reader, std::string_view what);
Result<DType> parse_dtype(PatternReader& reader);
// Reads (1, *, 3): a free dimension is -1.
Result<Shape> parse_shape(PatternReader& reader);
// Reads Tensor[(1, 3), float32], or float32 for a scalar.
Result<Type> parse_type(PatternReader& reader);
// Reads a string, True, False, None, a number, or a list of numbers or of lists of integers.
Result<AttrValue> parse_value(PatternReader& reader);

}  // namespace collage
