// Reads Relay text for its parsers: a token at a time; the current one is inspected and then
// passed. Errors state a token's line and column and what was expected. A position can be
// remembered and restored. Nesting is counted, since parsers are recursive.
//
//   TRY(reader.expect("("));
//   std::vector<Type> types = TRY(reader.list(")", [&] { return parse_type(reader); }));
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/lexer.h"
#include "base/result.h"
#include "ir/text_symbols.h"

namespace collage {

// Adds the token's place to an error.
inline Status at(const Token& token, Status status) {
  return std::move(status).with_context(token.place.to_string());
}
template <typename T>
Result<T> at(const Token& token, Result<T> result) {
  if (result.ok()) return result;
  return at(token, std::move(result).status());
}

class TextReader {
 public:
  // There is no token before the first step(). The dialect is Relay's unless another is given.
  explicit TextReader(std::string_view text, Dialect dialect = {.sigils = "%@",
                                                                .dotted_names = true,
                                                                .signed_numbers = true,
                                                                .escapes = true})
      : lexer_(text, dialect) {}

  const Token& token() const { return token_; }
  bool is(std::string_view spelling) const { return token_.is(spelling); }
  bool is(Token::Kind kind) const { return token_.kind == kind; }

  Status step();  // to the next token
  Status expected(std::string_view what) const;
  Status expect(std::string_view spelling);
  Result<bool> accept(std::string_view spelling);
  // item, item, … (a last comma may follow) up to `end`, which is passed.
  template <typename Item>
  auto list(std::string_view end, Item item)
      -> Result<std::vector<std::decay_t<decltype(*item())>>> {
    std::vector<std::decay_t<decltype(*item())>> items;
    while (!is(end)) {
      items.push_back(TRY(item()));
      if (!TRY(accept(","))) break;
    }
    TRY(expect(end));
    return items;
  }

  // The position before the current token and the blanks and comments in front of it.
  Lexer::Position position() const { return position_; }
  // Makes the token that follows the position the current one.
  Status seek(Lexer::Position position);
  // Does what Lexer::enter_comment does, behind the current token or at a position. The current
  // token stays until the next step.
  bool enter_comment() { return lexer_.enter_comment(); }
  bool enter_comment(Lexer::Position position);
  // The text between the current token, a '{', and the '}' that closes it (Lexer::block), and where
  // it starts. Both braces are passed.
  struct Block {
    std::string_view text;
    TextPlace place;
  };
  Result<Block> block();
  // Where extents may be terms over symbols; null: they are integers.
  const TextSymbols* symbols() const { return symbols_; }
  void set_symbols(const TextSymbols* symbols) { symbols_ = symbols; }
  // What stands from the current token to the end of the list's item (Lexer::item).
  std::string_view item() const {
    Lexer ahead = lexer_;
    ahead.seek(position_);
    return ahead.item();
  }
  // Passes that, a term over symbols, and returns its value. `numbers` are names of others.
  Result<int64_t> symbolic_extent(const std::map<std::string, int64_t>& numbers = {});
  // The text behind the current token, unlexed.
  std::string_view rest() const { return lexer_.rest(); }

  // A level of nesting while it exists; call check_nesting() after it.
  class Nesting {
   public:
    explicit Nesting(TextReader& reader) : reader_(reader) { ++reader_.nesting_; }
    ~Nesting() { --reader_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TextReader& reader_;
  };
  Status check_nesting() const;
  // Starts a new count for functions inside expressions; returns the old level, to be restored.
  int set_nesting(int level) { return std::exchange(nesting_, level); }

 private:
  Lexer lexer_;
  Token token_;
  Lexer::Position position_;
  const TextSymbols* symbols_ = nullptr;
  int nesting_ = 0;
};

inline constexpr int kMaxTextNesting = 64;  // of expressions, types and lists inside one another

}  // namespace collage
