// The words of a tensor program's text, and the constants that numbers among them stand for.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/lexer.h"
#include "base/result.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// Reads a text's tokens one after the other. Behind the last one stands one of kind kEnd, which
/// nothing passes. An unclosed string ends with its line.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text, TextPlace first = {});

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& next();  // passes it
  bool is(std::string_view text) const { return peek().is(text); }
  bool accept(std::string_view text);
  Status take(std::string_view text);
  Result<std::string> name();
  Status unexpected(std::string_view wanted) const;

  size_t position() const { return at_; }
  void seek(size_t position) { at_ = position; }
  const Token& at(size_t position) const { return tokens_[position]; }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

/// Parses "0.5f", "3", "7i64", "inff", "5_uint8" as a constant; fails for anything else, and for
/// numbers that the type does not hold.
Result<Term> number_of(std::string text, bool negative);

}  // namespace collage::tensor_program
