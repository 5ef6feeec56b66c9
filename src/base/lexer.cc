#include "base/lexer.h"

#include <fmt/format.h>

#include <cctype>

namespace collage {

namespace {

constexpr std::string_view kPairs[] = {"->", "#[", "==", "!=", "<=", ">=", "&&", "||"};
constexpr std::string_view kPythonPairs[] = {"//", "+=", "*="};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_part(char c) { return is_start(c) || is_digit(c); }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
// Whether it is a byte of a UTF-8 character, but not the first.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string TextPlace::to_string() const { return fmt::format("line {}, column {}", line, column); }

std::string Token::describe() const {
  switch (kind) {
    case Kind::kEnd:
      return "the end of the text";
    case Kind::kLocal:
    case Kind::kBinding:
      return "%" + text;
    case Kind::kGlobal:
      return "@" + text;
    case Kind::kString:
      return "a string";
    default:
      return "'" + text + "'";
  }
}

void Lexer::advance() {
  if (text_[position_.offset] == '\n') {
    ++position_.place.line;
    position_.place.column = 1;
  } else if (!continues(text_[position_.offset])) {
    ++position_.place.column;
  }
  ++position_.offset;
}

bool Lexer::skip_blanks() {
  while (!at_end()) {
    if (is_blank(peek())) {
      advance();
    } else if (dialect_.python
                   ? peek() == '#'
                   : (peek() == '/' && peek(1) == '/') || (peek() == '#' && peek(1) != '[')) {
      while (!at_end() && peek() != '\n') advance();
    } else if (!dialect_.python && peek() == '/' && peek(1) == '*') {
      const Position start = position_;
      while (!at_end() && !(peek() == '*' && peek(1) == '/')) advance();
      if (at_end()) {
        position_ = start;
        return false;
      }
      advance();
      advance();
    } else {
      break;
    }
  }
  return true;
}

bool Lexer::enter_comment() {
  const Position start = position_;
  while (!at_end() && is_blank(peek())) advance();
  if (peek() == '/' && peek(1) == '*') {
    advance();
    advance();
    return true;
  }
  position_ = start;
  return false;
}

Result<std::string_view> Lexer::block() {
  const Position start = position_;
  for (int depth = 1; !at_end(); advance()) {
    const char c = peek();
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      const std::string_view text = text_.substr(start.offset, position_.offset - start.offset);
      advance();
      return text;
    }
    if (c != '"' && (c != '/' || peek(1) != '/')) continue;
    // A string or a comment; neither goes beyond its line.
    do advance();
    while (!at_end() && peek() != '\n' && (c == '/' || peek() != '"'));
    if (at_end()) break;
  }
  return bad_model("this '{{' is not closed").with_context(start.place.to_string());
}

std::string_view Lexer::item() {
  while (!at_end() && is_blank(peek())) advance();
  const size_t start = position_.offset;
  for (int depth = 0; !at_end(); advance()) {
    const char c = peek();
    const bool is_comment =
        dialect_.python ? c == '#' : c == '/' && (peek(1) == '/' || peek(1) == '*');
    if (is_comment || (depth == 0 && (c == ',' || c == '\n'))) break;
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && --depth < 0) break;
  }
  size_t end = position_.offset;
  while (end > start && is_blank(text_[end - 1])) --end;
  return text_.substr(start, end - start);
}

void Lexer::read_string(Token& token) {
  const size_t start = position_.offset;
  const char quote = peek();
  advance();
  while (!at_end() && peek() != quote && (dialect_.escapes || peek() != '\n')) {
    char c = peek();
    if (c == '\\' && dialect_.escapes) {
      advance();
      c = peek() == 'n' ? '\n' : peek();
    }
    if (at_end()) break;
    advance();
    token.text += c;
  }
  if (peek() != quote) {
    token.kind = Token::Kind::kBad;
    token.text = text_.substr(start, position_.offset - start);
    return;
  }
  advance();
}

// A name behind a sigil, plain or quoted.
void Lexer::read_sigil(Token& token) {
  const char sigil = peek();
  advance();
  token.kind = sigil == '@' ? Token::Kind::kGlobal : Token::Kind::kLocal;
  if (peek() == '"' && dialect_.escapes) {
    token.place = position_.place;  // of a string that does not end
    return read_string(token);
  }
  if (sigil == '%' && is_digit(peek())) token.kind = Token::Kind::kBinding;
  for (; is_part(peek()); advance()) token.text += peek();
  if (!token.text.empty() || sigil == '$') return;
  if (sigil == '%' && is_blank(peek())) {  // a remainder, in a term that is passed over
    token.kind = Token::Kind::kMark;
    token.text = sigil;
    return;
  }
  token.kind = Token::Kind::kBad;
  token.place = position_.place;
}

void Lexer::read_number(std::string& text) {
  const auto take = [&] {
    text += peek();
    advance();
  };
  if (peek() == '-') take();
  while (is_digit(peek())) take();
  const bool has_suffix = (peek(1) == 'f' || peek(1) == 'd') && !is_part(peek(2));  // 1.f
  if (peek() == '.' && (is_digit(peek(1)) || !is_start(peek(1)) || has_suffix)) {
    take();
    while (is_digit(peek())) take();
  }
  if ((peek() == 'e' || peek() == 'E') &&
      (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
    take();
    take();
    while (is_digit(peek())) take();
  }
  while (is_part(peek())) take();  // a suffix, or inff after a minus
}

Token Lexer::next() {
  const bool ended = skip_blanks();
  Token token;
  token.place = position_.place;
  if (!ended) {
    token.kind = Token::Kind::kBad;
    token.text = "/*";
    position_.offset = text_.size();
    return token;
  }
  if (at_end()) return token;
  const char c = peek();
  if (dialect_.sigils.find(c) != std::string_view::npos) {
    const TextPlace place = token.place;
    read_sigil(token);
    if (token.kind == Token::Kind::kBad) return token;
    token.place = place;
    while (c == '%' && peek() == '.' && is_digit(peek(1))) {
      advance();
      int64_t index = 0;
      for (; is_digit(peek()); advance())
        if (index < (int64_t{1} << 40)) index = 10 * index + (peek() - '0');
      token.projections.push_back(index);
    }
  } else if (c == '"' || c == '\'') {
    token.kind = Token::Kind::kString;
    read_string(token);
  } else if (is_digit(c) ||
             (c == '-' && dialect_.signed_numbers && (is_digit(peek(1)) || peek(1) == 'i'))) {
    token.kind = Token::Kind::kNumber;
    read_number(token.text);
  } else if (is_start(c)) {
    token.kind = Token::Kind::kName;
    while (is_part(peek()) || (dialect_.dotted_names && peek() == '.' && is_start(peek(1)))) {
      token.text += peek();
      advance();
    }
    if (token.text == "inff" || token.text == "inff64" || token.text == "nanf" ||
        token.text == "nanf64")
      token.kind = Token::Kind::kNumber;
  } else {
    token.kind = Token::Kind::kMark;
    token.text = c;
    for (const std::string_view pair : kPairs)
      if (rest().starts_with(pair)) token.text = pair;
    if (dialect_.python)
      for (const std::string_view pair : kPythonPairs)
        if (rest().starts_with(pair)) token.text = pair;
    while (static_cast<unsigned char>(c) >= 0x80 && continues(peek(token.text.size())))
      token.text += peek(token.text.size());
    for (size_t i = 0; i < token.text.size(); ++i) advance();
  }
  return token;
}

}  // namespace collage
