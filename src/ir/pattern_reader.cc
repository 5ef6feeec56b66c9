#include "ir/pattern_reader.h"

namespace collage {

Status PatternReader::expected(std::string_view what) const {
  if (is(Token::Kind::kBad)) return at(token_, "expected a closing quote for " + token_.text);
  const std::string found = is(Token::Kind::kEnd)      ? "the end of the text"
                            : is(Token::Kind::kString) ? "the string '" + token_.text + "'"
                                                       : "'" + token_.text + "'";
  return at(token_, fmt::format("expected {}, found {}", what, found));
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
