#include "ir/pattern_reader.h"

#include <cctype>

namespace collage {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

}  // namespace

template <typename Accepts>
PatternToken PatternReader::take(PatternToken token, PatternToken::Kind kind, Accepts&& accepts) {
  token.kind = kind;
  while (at_ < text_.size() && accepts(text_[at_])) token.text += text_[at_++];
  return token;
}

PatternToken PatternReader::string(PatternToken token, char quote) {
  ++at_;
  token.kind = PatternToken::Kind::kString;
  while (at_ < text_.size() && text_[at_] != quote) token.text += text_[at_++];
  if (at_ == text_.size()) {
    token.kind = PatternToken::Kind::kBad;
    token.text = quote + token.text;
  } else {
    ++at_;
  }
  return token;
}

PatternToken PatternReader::next() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  PatternToken token;
  token.column = at_ + 1;
  if (at_ == text_.size()) return token;
  char c = text_[at_];
  if (is_letter(c))
    return take(token, PatternToken::Kind::kName, [](char x) { return is_word(x); });
  if (c == '$') {
    ++at_;
    return take(token, PatternToken::Kind::kHole, [](char x) { return is_word(x); });
  }
  if (is_digit(c) || (c == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    ++at_;
    token.text = c;
    // The exponent's sign belongs to the number.
    return take(token, PatternToken::Kind::kNumber, [this](char x) {
      bool sign = (x == '-' || x == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      return is_digit(x) || x == '.' || x == 'e' || x == 'E' || sign;
    });
  }
  if (c == '\'' || c == '"') return string(token, c);
  token.text = c;
  ++at_;
  token.kind = std::string_view("()[]{}|.,:*").find(c) != std::string_view::npos
                   ? PatternToken::Kind::kPunctuation
                   : PatternToken::Kind::kBad;
  return token;
}

Status PatternReader::expected(std::string_view what) const {
  if (token_.kind == PatternToken::Kind::kBad && token_.text.size() > 1)
    return at(token_, "expected a closing quote for " + token_.text);
  return at(token_, fmt::format("expected {}, found {}", what, token_.describe()));
}

Status PatternReader::expect(std::string_view spelling, std::string_view what) {
  if (!token_.is(spelling)) return expected(fmt::format("'{}'{}", spelling, what));
  step();
  return {};
}

bool PatternReader::accept(std::string_view spelling) {
  if (!token_.is(spelling)) return false;
  step();
  return true;
}

}  // namespace collage
