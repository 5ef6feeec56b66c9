// The lines of script, whose indentation matters. Brackets join lines; comments run from # to the
// end of the line.
#pragma once

#include <string>
#include <string_view>

#include "ir/text_reader.h"

namespace collage {

TextReader script_reader(std::string_view text);

// Returns a name without what it is imported from: grid of T.grid, exp of relax.op.exp. Returns
// nothing of a token that is no name.
std::string_view word(const Token& token);
// Returns whether that stands behind the current token.
Result<bool> followed_by(TextReader& reader, std::string_view spelling);

// Passes `n = T.int64()`, the declaration of a symbol, if it stands here.
Result<bool> accept_symbol(TextReader& reader);
// Passes a token and returns it.
Result<Token> take(TextReader& reader);
// Passes a token and the '(' behind it.
Status enter(TextReader& reader);
// Passes '(' or '[', and returns what closes it.
Result<std::string_view> enter_list(TextReader& reader, std::string_view what);
// Passes `name =` if it stands here.
Result<bool> accept_keyword(TextReader& reader, std::string_view name);
Result<std::string> read_name(TextReader& reader, std::string_view what);  // without dots
Result<std::string> read_string(TextReader& reader, std::string_view what);

// Fails where the current token stands in the line of the one before it.
Status end_of_line(const TextReader& reader);
// Passes the rest of a line; with the lines below it that are indented more than column `outer`.
Status skip_line(TextReader& reader);
Status skip_block(TextReader& reader, size_t outer);

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
