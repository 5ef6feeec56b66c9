// The lines of script, whose indentation matters. Brackets join lines; comments run from # to the
// end of the line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ir/text_reader.h"
#include "ir/type.h"

namespace collage {

TextReader script_reader(std::string_view text);

// Passes a token and returns it.
Result<Token> take(TextReader& reader);
// Returns whether T.grid stands here, or grid.
bool is_of(const TextReader& reader, std::string_view prefix, std::string_view name);
// Returns whether that stands behind the current token.
Result<bool> followed_by(TextReader& reader, std::string_view spelling);
Result<std::string> read_name(TextReader& reader, std::string_view what);  // without dots
Result<std::string> read_string(TextReader& reader, std::string_view what);

// Reads numbers, strings, lists, tuples and dictionaries as JSON.
Result<nlohmann::json> read_json(TextReader& reader);
// Finds the shape of nested lists, and appends their numbers to `values`. Called with depth 0 and
// an empty shape. kBadModel: lists of one level differ in length.
Status flatten(const nlohmann::json& value, size_t depth, Shape& shape, nlohmann::json& values);

// Fails where the current token stands in the line of the one before it.
Status end_of_line(const TextReader& reader);

// Reads ':' and the lines that are indented more than column `outer`, each by `line()`.
template <typename Line>
Status read_block(TextReader& reader, size_t outer, Line line) {
  TRY(reader.expect(":"));
  TRY(end_of_line(reader));
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const size_t column = reader.token().place.column;
  if (reader.is(Token::Kind::kEnd) || column <= outer)
    return at(reader.token(), bad_model("the line above needs lines that are indented below it"));
  while (!reader.is(Token::Kind::kEnd) && reader.token().place.column == column) {
    TRY(line());
    TRY(end_of_line(reader));
  }
  if (!reader.is(Token::Kind::kEnd) && reader.token().place.column > outer)
    return at(reader.token(), bad_model("this line is indented like none above it"));
  return {};
}

}  // namespace collage
