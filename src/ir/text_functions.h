// Functions in Relay text: signatures, bodies, and the expressions in them.
//
//   (%x: Tensor[(4), float32]) -> float32 { %0 = nn.relu(%x); sum(%0) }
//
// Types are inferred, and compared with those the text states: of results, and in comments /* ty=…
// */ behind values. Local names are bound in their function; globals are those whose headers the
// module's parser has read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/effects.h"
#include "ir/expr.h"
#include "ir/text_metadata.h"
#include "ir/text_reader.h"

namespace collage {

struct Signature {
  std::vector<Expr> params;
  Attrs attrs;
  std::optional<Type> result;
  Token start;  // for messages
};

// The types of a module's functions; none for a function that states no result.
using GlobalTypes = std::map<std::string, std::optional<Type>>;

class FunctionParser {
 public:
  // `positions`: calls get their positions as origin.
  FunctionParser(TextReader& reader, Metadata& metadata, const GlobalTypes& globals, bool positions)
      : reader_(reader), metadata_(metadata), globals_(globals), positions_(positions) {}

  // Parses from '(' up to '{'.
  Result<Signature> signature();
  // Parses from '{' to behind '}'.
  Result<Function> body(const Signature& signature);
  // Parses meta[relay.Constant][i].
  Result<Expr> meta();
  // Of all bodies that were parsed.
  const CallsOfText& calls() const { return calls_of_; }

 private:
  // The names of one function.
  struct Scope {
    std::unordered_map<std::string, Expr> locals, bindings;
  };

  // Reads `%0 = expression;` (or `let %x = expression;`) if one stands here.
  Result<bool> binding();
  // Checks a comment /* ty=… */ before the current token.
  Status type_comment_check(const Expr& expr);
  std::string origin_at(const Token& token) const;
  Result<Expr> expression();
  Result<Expr> symbolic_scalar();
  Result<Expr> local();
  Result<Expr> global();
  Result<Expr> call(const Token& start, Expr callee);
  Result<Expr> operator_call();

  TextReader& reader_;
  Metadata& metadata_;
  const GlobalTypes& globals_;
  const bool positions_;
  std::map<std::string, Expr> global_vars_;
  std::map<std::pair<const ExprNode*, int64_t>, Expr> projections_;
  Scope scope_;
  std::vector<Expr> calls_;  // of the function that is parsed
  CallsOfText calls_of_;
  int function_depth_ = 0;
};

}  // namespace collage
