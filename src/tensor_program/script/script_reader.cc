#include "tensor_program/script/script_reader.h"

namespace collage::tensor_program {

TextReader script_reader(std::string_view text) {
  return TextReader(text, {.dotted_names = true, .escapes = true, .python = true});
}

Result<Token> take(TextReader& reader) {
  Token token = reader.token();
  TRY(reader.step());
  return token;
}

bool is_of(const TextReader& reader, std::string_view prefix, std::string_view name) {
  if (!reader.is(Token::Kind::kName)) return false;
  std::string_view text = reader.token().text;
  if (text.size() > prefix.size() && text.starts_with(prefix) && text[prefix.size()] == '.')
    text.remove_prefix(prefix.size() + 1);
  return text == name;
}

Result<bool> followed_by(TextReader& reader, std::string_view spelling) {
  const Lexer::Position back = reader.position();
  TRY(reader.step());
  const bool follows = reader.is(spelling);
  TRY(reader.seek(back));
  return follows;
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

}  // namespace collage::tensor_program
