#include "ir/script_reader.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace collage {

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

// Numbers, strings, lists and objects, as JSON; lists of numbers are constants' values.
Result<nlohmann::json> read_json(TextReader& reader) {
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const Token start = TRY(take(reader));
  if (start.is("[") || start.is("(")) {
    return nlohmann::json(
        TRY(reader.list(start.is("[") ? "]" : ")", [&] { return read_json(reader); })));
  }
  if (start.is("{")) {
    nlohmann::json object = nlohmann::json::object();
    while (!reader.is("}")) {
      const std::string name = TRY(read_string(reader, "a name as a string"));
      TRY(reader.expect(":"));
      object[name] = TRY(read_json(reader));
      if (!TRY(reader.accept(","))) break;
    }
    TRY(reader.expect("}"));
    return object;
  }
  if (start.kind == Token::Kind::kString) return nlohmann::json(start.text);
  if (start.is("True") || start.is("False")) return nlohmann::json(start.is("True") ? 1U : 0U);
  const std::string text = start.is("-") ? "-" + TRY(take(reader)).text : start.text;
  nlohmann::json number = parse_json(text);
  if (!number.is_number()) return at(start, bad_model("'{}' is no number", text));
  return number;
}

// The shape of nested lists, whose numbers get into one.
Status flatten(const nlohmann::json& value, size_t depth, Shape& shape, nlohmann::json& values) {
  if (!value.is_array()) {
    if (depth != shape.size()) return bad_model("lists of different lengths");
    values.push_back(value);
    return {};
  }
  const auto length = static_cast<int64_t>(value.size());
  if (values.empty() && depth == shape.size()) shape.push_back(length);
  if (depth >= shape.size() || shape[depth] != length)
    return bad_model("lists of different lengths");
  for (const nlohmann::json& item : value) TRY(flatten(item, depth + 1, shape, values));
  return {};
}

}  // namespace collage
