// Reads a pattern's or a rule's text for its parsers: a token at a time; the current one is
// inspected and then passed. Errors (kUsage) name the column, from 1 (and the line, after the
// first), and what was expected. Names may stand in quotes
// of either kind as strings.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/lexer.h"
#include "base/result.h"

namespace collage {

inline Status at(const Token& token, std::string_view message) {
  if (token.place.line > 1) return usage_error("{}: {}", token.place.to_string(), message);
  return usage_error("column {}: {}", token.place.column, message);
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text)
      : lexer_(text, {.sigils = "$", .signed_numbers = true}) {
    step();
  }

  const Token& token() const { return token_; }
  bool is(std::string_view spelling) const { return token_.is(spelling); }
  bool is(Token::Kind kind) const { return token_.kind == kind; }

  void step() { token_ = lexer_.next(); }  // to the next token
  Status expected(std::string_view what) const;
  // `what` follows the spelling in the message.
  Status expect(std::string_view spelling, std::string_view what = "");
  bool accept(std::string_view spelling);

 private:
  Lexer lexer_;
  Token token_;
};

}  // namespace collage
