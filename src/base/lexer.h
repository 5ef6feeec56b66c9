// Tokens of the texts that people write: Relay (ir/text_reader.h), patterns (ir/pattern_reader.h),
// tensor programs (tensor_program/program_tokens.h) and script (ir/script_reader.h). Comments
// (`//`, `/* */`, and `#` where no `[` follows) are skipped. Strings stand in quotes of either
// kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage {

// Of a token, or of where a text starts in a larger one. Columns count characters.
struct TextPlace {
  size_t line = 1, column = 1;
  std::string to_string() const;  // "line 3, column 8"
};

struct Token {
  enum class Kind {
    kEnd,
    kName,     // conv2d, def, True
    kLocal,    // %x or $x (text is the name), with projections: %x.0.1
    kBinding,  // %0 (text is the digits), with projections
    kGlobal,   // @main
    kNumber,   // 1, -0.5f, 1i64, inff: text is the spelling
    kString,   // text is the content
    kMark,     // one character, or one of "->", "#[", "==", "!=", "<=", ">=", "&&", "||"
    kBad       // does not end, or % without a name; text is what there is of it
  };
  Kind kind = Kind::kEnd;
  std::string text;
  std::vector<int64_t> projections;
  TextPlace place;

  bool is(std::string_view spelling) const {
    return (kind == Kind::kMark || kind == Kind::kName) && text == spelling;
  }
  std::string describe() const;  // for messages: "'}'", "%x", "the end of the text"
};

// What the languages differ in.
struct Dialect {
  std::string_view sigils = "";  // that names may start with: of '%', '@' and '$'
  bool dotted_names = false;     // nn.conv2d is one name
  bool signed_numbers = false;   // -1 is one number
  bool escapes = false;          // a string may go over lines, and \ stands before a quote
  bool python = false;           // only # begins a comment; "//", "+=" and "*=" are one mark each
};

class Lexer {
 public:
  struct Position {
    size_t offset = 0;
    TextPlace place = {};
  };
  Lexer(std::string_view text, Dialect dialect, TextPlace first = {})
      : text_(text), dialect_(dialect), position_{0, first} {}

  Token next();
  Position position() const { return position_; }
  void seek(Position position) { position_ = position; }
  // If only blanks stand before a comment /* … */: moves behind its start. Text in it is then lexed
  // as usual.
  bool enter_comment();
  // Behind a '{': what stands up to the '}' that closes it, unlexed but for strings and comments
  // `//`; moves behind that.
  Result<std::string_view> block();
  // What stands up to the comma, the closing bracket or the comment outside of brackets, or the end
  // of the line, unlexed and without blanks around; moves behind that.
  std::string_view item();
  // What is left from here, unlexed.
  std::string_view rest() const { return text_.substr(position_.offset); }

 private:
  char peek(size_t ahead = 0) const {
    return position_.offset + ahead < text_.size() ? text_[position_.offset + ahead] : '\0';
  }
  bool at_end() const { return position_.offset >= text_.size(); }
  void advance();
  bool skip_blanks();  // whether comments end
  void read_string(Token& token);
  void read_sigil(Token& token);
  void read_number(std::string& text);

  std::string_view text_;
  Dialect dialect_;
  Position position_;
};

}  // namespace collage
