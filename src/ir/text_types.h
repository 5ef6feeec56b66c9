// Types in Relay text: float32 (a scalar), Tensor[(1, 3), float32], (type, …) for tuples and
// fn(type, …) -> type. Each function reads from the current token on.
#pragma once

#include "base/result.h"
#include "ir/text_reader.h"
#include "ir/type.h"

namespace collage {

Result<Type> parse_type(TextReader& reader);
// 3 or 3i64.
Result<int64_t> parse_integer(TextReader& reader);

}  // namespace collage
