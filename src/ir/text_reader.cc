#include "ir/text_reader.h"

namespace collage {

Status TextReader::step() {
  position_ = lexer_.position();
  token_ = lexer_.next();
  if (!is(Token::Kind::kBad)) return {};
  return at(token_, bad_model("{}", token_.text.empty()   ? "expected a name"
                                    : token_.text == "/*" ? "this comment does not end"
                                                          : "this string does not end"));
}

Status TextReader::expected(std::string_view what) const {
  return at(token_, bad_model("expected {}, found {}", what, token_.describe()));
}

Status TextReader::expect(std::string_view spelling) {
  if (!token_.is(spelling)) return expected(fmt::format("'{}'", spelling));
  return step();
}

Result<bool> TextReader::accept(std::string_view spelling) {
  if (!token_.is(spelling)) return false;
  TRY(step());
  return true;
}

Status TextReader::seek(Lexer::Position position) {
  lexer_.seek(position);
  return step();
}

Result<TextReader::Block> TextReader::block() {
  if (!is("{")) return expected("'{'");
  const Lexer::Position start = lexer_.position();
  const std::string_view text = TRY(lexer_.block());
  TRY(step());
  return Block{text, start.place};
}

Result<int64_t> TextReader::symbolic_extent(const std::map<std::string, int64_t>& numbers) {
  const Token start = token_;
  lexer_.seek(position_);
  const std::string_view text = lexer_.item();
  if (text.empty()) return expected("an extent");
  const int64_t value = TRY(at(start, symbols_->value(text, numbers)));
  TRY(step());
  return value;
}

bool TextReader::enter_comment(Lexer::Position position) {
  lexer_.seek(position);
  return lexer_.enter_comment();
}

Status TextReader::check_nesting() const {
  if (nesting_ <= kMaxTextNesting) return {};
  return at(token_, bad_model("nested more than {} levels deep", kMaxTextNesting));
}

}  // namespace collage
