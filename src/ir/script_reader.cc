#include "ir/script_reader.h"

namespace collage {

TextReader script_reader(std::string_view text) {
  return TextReader(text, {.dotted_names = true, .escapes = true, .python = true});
}

std::string_view word(const Token& token) {
  if (token.kind != Token::Kind::kName) return {};
  const std::string_view name = token.text;
  for (const std::string_view prefix : {"relax.op.", "relax.", "R.op.", "R.", "op.", "T."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

Result<bool> followed_by(TextReader& reader, std::string_view spelling) {
  const Lexer::Position back = reader.position();
  TRY(reader.step());
  const bool follows = reader.is(spelling);
  TRY(reader.seek(back));
  return follows;
}

Result<bool> accept_symbol(TextReader& reader) {
  if (reader.symbols() == nullptr || !reader.is(Token::Kind::kName) ||
      !TRY(followed_by(reader, "=")))
    return false;
  const Lexer::Position back = reader.position();
  const Token name = TRY(take(reader));
  TRY(reader.step());
  if (word(reader.token()) != "int64" && word(reader.token()) != "int32") {
    TRY(reader.seek(back));
    return false;
  }
  TRY(at(name, reader.symbols()->value(name.text, {})));
  TRY(skip_line(reader));
  return true;
}

Result<Token> take(TextReader& reader) {
  Token token = reader.token();
  TRY(reader.step());
  return token;
}

Status enter(TextReader& reader) {
  TRY(reader.step());
  return reader.expect("(");
}

Result<std::string_view> enter_list(TextReader& reader, std::string_view what) {
  const std::string_view close = reader.is("(") ? ")" : "]";
  if (!reader.is("(") && !reader.is("[")) return reader.expected(what);
  TRY(reader.step());
  return close;
}

Result<bool> accept_keyword(TextReader& reader, std::string_view name) {
  if (!reader.is(name) || !TRY(followed_by(reader, "="))) return false;
  TRY(reader.step());
  TRY(reader.step());
  return true;
}

Result<std::string> read_name(TextReader& reader, std::string_view what) {
  if (!reader.is(Token::Kind::kName) || reader.token().text.find('.') != std::string::npos)
    return reader.expected(what);
  return TRY(take(reader)).text;
}

Result<std::string> read_string(TextReader& reader, std::string_view what) {
  if (!reader.is(Token::Kind::kString)) return reader.expected(what);
  return TRY(take(reader)).text;
}

Status end_of_line(const TextReader& reader) {
  if (reader.is(Token::Kind::kEnd) || reader.token().place.line > reader.position().place.line)
    return {};
  return reader.expected("the end of the line");
}

Status skip_line(TextReader& reader) {
  do TRY(reader.step());
  while (!end_of_line(reader).ok());
  return {};
}

Status skip_block(TextReader& reader, size_t outer) {
  int open = 0;
  do {
    if (reader.is("(") || reader.is("[") || reader.is("{")) ++open;
    if (reader.is(")") || reader.is("]") || reader.is("}")) --open;
    TRY(reader.step());
  } while (!reader.is(Token::Kind::kEnd) &&
           (open > 0 || !end_of_line(reader).ok() || reader.token().place.column > outer));
  return {};
}

}  // namespace collage
