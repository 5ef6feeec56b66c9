// Types in Relay text: float32 (a scalar), Tensor[(1, 3), float32], (type, …) for tuples and
// fn(type, …) -> type. Each function reads from the current token on.
#pragma once

#include "base/result.h"
#include "ir/text_reader.h"
#include "ir/type.h"

namespace collage {

Result<Type> parse_type(TextReader& reader);
// Counts the types inside that of a tuple's field, which repeats those of its fields: a tuple of
// two times another has twice as many. Fails for too many, and where they nest deeper than text
// may; `depth` is 1 for a field of the outermost tuple.
Status count_types(const Type& type, int depth, size_t& count);
// 3 or 3i64.
Result<int64_t> parse_integer(TextReader& reader);

}  // namespace collage
