// Attributes in Relay text: `name = value` among an operator's arguments or a function's
// parameters. A value is a string, None, True, False, a number, or a list of integers, of reals, or
// of lists of integers. Integers may use all of 64 bits; reals are double whatever their suffix,
// and infinite ones may stand as script has them: float("inf").
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/expr.h"
#include "ir/text_reader.h"
#include "ir/text_types.h"

namespace collage {

// Reads `name =` if it stands here.
Result<std::optional<std::string>> parse_attr_name(TextReader& reader);
Result<AttrValue> parse_attr_value(TextReader& reader);

// The attributes of an operator's call that are to be printed: those that differ from their
// defaults, in the operator's order, then those beside.
std::vector<std::pair<std::string, AttrValue>> stated_attrs(const CallNode& call);

template <typename Argument>
struct CallArguments {
  std::vector<Argument> args;
  Attrs attrs;
};
// Reads `x, y, name = value)`: arguments by `expression()`, then attributes, the value of each by
// `attribute(name)`.
template <typename Argument = Expr, typename Expression, typename Attribute>
Result<CallArguments<Argument>> parse_call_arguments(TextReader& reader, Expression&& expression,
                                                     Attribute&& attribute) {
  CallArguments<Argument> read;
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

// Reads a tuple, `(x, y)` or `[x, y]`, from behind its bracket `start`. (x) is x.
template <typename Expression>
Result<Expr> parse_tuple(TextReader& reader, const Token& start, Expression&& expression) {
  bool is_tuple = start.is("[");
  const std::string_view end = is_tuple ? "]" : ")";
  std::vector<Expr> fields;
  while (!reader.is(end)) {
    fields.push_back(TRY(expression()));
    if (!TRY(reader.accept(","))) break;
    is_tuple = true;
  }
  TRY(reader.expect(end));
  if (fields.size() == 1 && !is_tuple) return fields[0];
  size_t count = 0;
  for (const Expr& field : fields) TRY(at(start, count_types(field->type(), 1, count)));
  return make_tuple(std::move(fields));
}

}  // namespace collage
