#include "ir/text_lexer.h"

#include <cctype>

namespace collage {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_part(char c) { return is_start(c) || is_digit(c); }

Status lex_error(const Lexer::Position& at, std::string message) {
  return Status(ErrorCode::kBadModel, std::move(message))
      .with_context(fmt::format("line {}, column {}", at.line, at.column));
}

}  // namespace

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
    ++position_.line;
    position_.column = 1;
  } else if ((static_cast<unsigned char>(text_[position_.offset]) & 0xC0) != 0x80) {
    ++position_.column;  // UTF-8: columns count characters
  }
  ++position_.offset;
}

Status Lexer::skip_blanks() {
  while (!at_end()) {
    if (std::isspace(static_cast<unsigned char>(peek()))) {
      advance();
    } else if ((peek() == '/' && peek(1) == '/') || (peek() == '#' && peek(1) != '[')) {
      while (!at_end() && peek() != '\n') advance();
    } else if (peek() == '/' && peek(1) == '*') {
      Position start = position_;
      while (!at_end() && !(peek() == '*' && peek(1) == '/')) advance();
      if (at_end()) return lex_error(start, "this comment does not end");
      advance();
      advance();
    } else {
      break;
    }
  }
  return {};
}

bool Lexer::enter_comment() {
  Position start = position_;
  while (!at_end() && std::isspace(static_cast<unsigned char>(peek()))) advance();
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
  return lex_error(start, "this '{' is not closed");
}

Status Lexer::read_string(std::string& out) {
  Position start = position_;
  advance();
  while (!at_end() && peek() != '"') {
    char c = peek();
    if (c == '\\') {
      advance();
      c = peek();
      if (c == 'n') c = '\n';
    }
    if (at_end()) break;
    advance();
    out += c;
  }
  if (at_end()) return lex_error(start, "this string does not end");
  advance();
  return {};
}

// After % or @: a name, plain or quoted.
Status Lexer::read_name(Token& token) {
  if (peek() == '"') return read_string(token.text);
  Position start = position_;
  while (is_part(peek())) {
    token.text += peek();
    advance();
  }
  if (token.text.empty()) return lex_error(start, "expected a name");
  return {};
}

void Lexer::read_number(Token& token) {
  auto take = [&] {
    token.text += peek();
    advance();
  };
  if (peek() == '-') take();
  while (is_digit(peek())) take();
  if (peek() == '.' && is_digit(peek(1))) {
    take();
    while (is_digit(peek())) take();
  } else if (peek() == '.' && !is_start(peek(1))) {
    take();
  }
  if ((peek() == 'e' || peek() == 'E') &&
      (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
    take();
    take();
    while (is_digit(peek())) take();
  }
  while (is_part(peek())) take();  // a suffix, or inff after a minus
}

Result<Token> Lexer::next() {
  TRY(skip_blanks());
  Token token;
  token.line = position_.line;
  token.column = position_.column;
  if (at_end()) return token;
  char c = peek();
  if (c == '%' || c == '@') {
    advance();
    bool quoted = peek() == '"';
    TRY(read_name(token));
    token.kind = c == '@'                             ? Token::Kind::kGlobal
                 : !quoted && is_digit(token.text[0]) ? Token::Kind::kBinding
                                                      : Token::Kind::kLocal;
    while (c == '%' && peek() == '.' && is_digit(peek(1))) {
      advance();
      int64_t index = 0;
      for (; is_digit(peek()); advance())
        if (index < (int64_t{1} << 40)) index = 10 * index + (peek() - '0');
      token.projections.push_back(index);
    }
  } else if (c == '"') {
    token.kind = Token::Kind::kString;
    TRY(read_string(token.text));
  } else if (is_digit(c) || (c == '-' && (is_digit(peek(1)) || peek(1) == 'i'))) {
    token.kind = Token::Kind::kNumber;
    read_number(token);
  } else if (is_start(c)) {
    token.kind = Token::Kind::kIdentifier;
    while (is_part(peek()) || (peek() == '.' && is_start(peek(1)))) {
      token.text += peek();
      advance();
    }
    if (token.text == "inff" || token.text == "inff64" || token.text == "nanf" ||
        token.text == "nanf64")
      token.kind = Token::Kind::kNumber;
  } else {
    token.kind = Token::Kind::kPunctuation;
    token.text = c;
    if ((c == '-' && peek(1) == '>') || (c == '#' && peek(1) == '[')) {
      advance();
      token.text += peek();
    }
    advance();
  }
  return token;
}

}  // namespace collage
