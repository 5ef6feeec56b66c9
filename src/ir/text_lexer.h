// Tokens of Relay text. Comments (`//`, `/* */`, and `#` unless `[` follows) are skipped, but a
// comment right after a token can be read: such comments hold types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage {

struct Token {
  enum class Kind {
    kEnd,
    kIdentifier,  // nn.conv2d, def, True
    kLocal,       // %x (text is the name), with projections: %x.0.1
    kBinding,     // %0 (text is the digits), with projections
    kGlobal,      // @main
    kNumber,      // 1, -0.5f, 1i64, inff: text is the spelling
    kString,      // text is the content
    kPunctuation  // one character, or "->" or "#["
  };
  Kind kind = Kind::kEnd;
  std::string text;
  std::vector<int64_t> projections;
  size_t line = 1, column = 1;

  bool is(std::string_view spelling) const {
    return (kind == Kind::kPunctuation || kind == Kind::kIdentifier) && text == spelling;
  }
  std::string describe() const;  // for messages: "'}'", "%x", "the end of the text"
};

class Lexer {
 public:
  struct Position {
    size_t offset = 0, line = 1, column = 1;
  };
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<Token> next();
  Position position() const { return position_; }
  void seek(Position position) { position_ = position; }
  // Moves behind the start of a comment /* … */ if only blanks precede it. Text in it is then lexed
  // as usual.
  bool enter_comment();
  // Returns what stands between a '{', just passed, and the '}' that closes it, unlexed but for
  // strings and comments `//`; moves behind it.
  Result<std::string_view> block();
  // Returns the rest of the text, unlexed.
  std::string_view rest() const { return text_.substr(position_.offset); }

 private:
  char peek(size_t ahead = 0) const {
    return position_.offset + ahead < text_.size() ? text_[position_.offset + ahead] : '\0';
  }
  bool at_end() const { return position_.offset >= text_.size(); }
  void advance();
  Status skip_blanks();
  Status read_string(std::string& out);
  Status read_name(Token& token);
  void read_number(Token& token);

  std::string_view text_;
  Position position_;
};

}  // namespace collage
