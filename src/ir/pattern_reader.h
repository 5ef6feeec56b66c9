// Reads a pattern's text for its parsers: a token at a time; the current one is inspected and then
// passed. Errors (kUsage) name the column, from 1, and what was expected. Names may stand in quotes
// of either kind as strings; a sign that begins no token is a token of kind kBad, and so is a
// string without its closing quote.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace collage {

struct PatternToken {
  enum class Kind { kEnd, kName, kHole, kNumber, kString, kPunctuation, kBad };
  Kind kind = Kind::kEnd;
  std::string text;
  size_t column = 1;
  bool is(std::string_view spelling) const {
    return (kind == Kind::kPunctuation || kind == Kind::kName) && text == spelling;
  }
  std::string describe() const {
    if (kind == Kind::kEnd) return "the end of the pattern";
    return kind == Kind::kString ? "the string '" + text + "'" : "'" + text + "'";
  }
};

inline Status at(const PatternToken& token, std::string_view message) {
  return usage_error("column {}: {}", token.column, message);
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) { step(); }

  const PatternToken& token() const { return token_; }
  bool is(std::string_view spelling) const { return token_.is(spelling); }
  bool is(PatternToken::Kind kind) const { return token_.kind == kind; }

  void step() { token_ = next(); }  // to the next token
  Status expected(std::string_view what) const;
  // `what` follows the spelling in the message.
  Status expect(std::string_view spelling, std::string_view what = "");
  bool accept(std::string_view spelling);

 private:
  PatternToken next();
  template <typename Accepts>
  PatternToken take(PatternToken token, PatternToken::Kind kind, Accepts&& accepts);
  PatternToken string(PatternToken token, char quote);

  std::string_view text_;
  size_t at_ = 0;
  PatternToken token_;
};

}  // namespace collage
