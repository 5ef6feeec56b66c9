#include "tensor_program/extent.h"

#include <algorithm>

#include "base/printable.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

constexpr int kMostNestedTerms = 256;

class ExtentParser {
 public:
  explicit ExtentParser(TokenReader& tokens) : tokens_(tokens) {}

  Result<Term> sum(int nested) {
    Term left = TRY(product(nested));
    for (;;) {
      if (accept("+")) {
        left = left + TRY(product(nested));
      } else if (accept("-")) {
        left = left - TRY(product(nested));
      } else {
        return left;
      }
      if (left->depth >= kMostNestedTerms) return too_deep();
    }
  }

 private:
  static Status too_deep() {
    return bad_model("an extent of more than {} levels", kMostNestedTerms);
  }

  Result<Term> product(int nested) {
    Term left = TRY(factor(nested));
    for (;;) {
      if (accept("*")) {
        left = left * TRY(factor(nested));
      } else if (accept("/")) {
        left = left / TRY(factor(nested));
      } else if (accept("%")) {
        left = left % TRY(factor(nested));
      } else {
        return left;
      }
      if (left->depth >= kMostNestedTerms) return too_deep();
    }
  }

  Result<Term> factor(int nested) {
    if (nested == kMostNestedTerms) return too_deep();
    const Token& token = tokens_.peek();
    if (accept("(")) {
      Term inner = TRY(sum(nested + 1));
      TRY(tokens_.take(")"));
      return inner;
    }
    if (token.kind == Token::Kind::kName) {
      tokens_.next();
      const bool least = token.text == "min";
      if ((!least && token.text != "max") || !accept("(")) return var(token.text);
      const Term a = TRY(sum(nested + 1));
      TRY(tokens_.take(","));
      const Term b = TRY(sum(nested + 1));
      TRY(tokens_.take(")"));
      return least ? min(a, b) : max(a, b);
    }
    if (token.kind != Token::Kind::kNumber) return tokens_.unexpected("an extent");
    tokens_.next();
    Term number = TRY(number_of(token.text, false));
    if (number.dtype() != DType::kInt32) return bad_model("{} is no extent", printable(token.text));
    return number;
  }

  bool accept(std::string_view mark) { return tokens_.accept(mark); }

  TokenReader& tokens_;
};

Term with_values(const Term& extent, const Symbols& symbols) {
  return rewrite(extent, [&](const Term& t) {
    const auto found = t->op == TermOp::kVar ? symbols.find(t->name) : symbols.end();
    return found == symbols.end() ? t : integer_constant(found->second, DType::kInt32);
  });
}

/// factor * symbol + rest
struct Linear {
  int64_t factor, rest;
};
std::optional<Linear> linear(const Term& term) {
  if (const auto value = known_integer(term)) return Linear{0, *value};
  if (term->op == TermOp::kVar) return Linear{1, 0};
  if (term->args.size() != 2) return std::nullopt;
  const auto a = linear(term->args[0]), b = linear(term->args[1]);
  if (!a || !b) return std::nullopt;
  switch (term->op) {
    case TermOp::kAdd:
      return Linear{a->factor + b->factor, a->rest + b->rest};
    case TermOp::kSubtract:
      return Linear{a->factor - b->factor, a->rest - b->rest};
    case TermOp::kMultiply: {
      if (a->factor != 0 && b->factor != 0) return std::nullopt;
      Linear result{};
      const bool overflow =
          __builtin_mul_overflow(a->rest, b->rest, &result.rest) ||
          __builtin_mul_overflow(a->factor != 0 ? a->factor : b->factor,
                                 a->factor != 0 ? b->rest : a->rest, &result.factor);
      // Sums of some hundred of these cannot overflow.
      constexpr int64_t kMost = int64_t{1} << 48;
      if (overflow || std::max({result.rest, -result.rest, result.factor, -result.factor}) > kMost)
        return std::nullopt;
      return result;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<Term> parse_extent(TokenReader& tokens) { return ExtentParser(tokens).sum(0); }

std::vector<std::string> unknown_symbols(const Term& extent, const Symbols& known) {
  std::vector<std::string> names;
  if (!extent.defined()) return names;
  rewrite(extent, [&](const Term& t) {
    if (t->op == TermOp::kVar && known.count(t->name) == 0 &&
        std::find(names.begin(), names.end(), t->name) == names.end())
      names.push_back(t->name);
    return t;
  });
  return names;
}

std::optional<int64_t> value_of(const Term& extent, const Symbols& symbols) {
  return known_integer(with_values(extent, symbols));
}

std::optional<int64_t> solve(const Term& extent, const std::string& symbol, const Symbols& known,
                             int64_t value) {
  const Term left = with_values(extent, known);
  if (unknown_symbols(left, {}) != std::vector<std::string>{symbol}) return std::nullopt;
  const auto form = linear(left);
  if (!form || form->factor == 0 || (value - form->rest) % form->factor != 0) return std::nullopt;
  return (value - form->rest) / form->factor;
}

}  // namespace collage::tensor_program
