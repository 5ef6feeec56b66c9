// Attributes in Relay text: `name = value` among an operator's arguments or a function's
// parameters. A value is a string, None, True, False, a number, or a list of integers, of reals, or
// of lists of integers. Integers may use all of 64 bits; reals are double whatever their suffix.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/text_reader.h"

namespace collage {

// Reads `name =` if it stands here.
Result<std::optional<std::string>> parse_attr_name(TextReader& reader);
Result<AttrValue> parse_attr_value(TextReader& reader);

}  // namespace collage
