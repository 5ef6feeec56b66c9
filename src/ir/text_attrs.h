// Attributes in Relay text: `name = value` among an operator's arguments or a function's
// parameters. A value is a string, None, True, False, a number, or a list of integers, of reals, or
// of lists of integers. Integers may use all of 64 bits; reals are double whatever their suffix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/expr.h"
#include "ir/text_reader.h"

namespace collage {

// Reads `name =` if it stands here.
Result<std::optional<std::string>> parse_attr_name(TextReader& reader);
Result<AttrValue> parse_attr_value(TextReader& reader);

struct CallArguments {
  std::vector<Expr> args;
  Attrs attrs;
};
// Reads `x, y, name = value)`: expressions by `expression()`, then attributes, the value of each by
// `attribute(name)`.
template <typename Expression, typename Attribute>
Result<CallArguments> parse_call_arguments(TextReader& reader, Expression&& expression,
                                           Attribute&& attribute) {
  CallArguments read;
  while (!reader.is(")")) {
    if (const std::optional<std::string> name = TRY(parse_attr_name(reader))) {
      read.attrs.set(*name, TRY(attribute(*name)));
    } else if (!read.attrs.empty()) {
      return reader.expected("an attribute or ')'");
    } else {
      read.args.push_back(TRY(expression()));
    }
    if (!TRY(reader.accept(","))) break;
  }
  TRY(reader.expect(")"));
  return read;
}

}  // namespace collage
