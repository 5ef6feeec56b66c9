// Terms of script, read and printed.
#include <cmath>

#include "frontend/script/script_values.h"
#include "tensor_program/checked_term.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using Kind = Token::Kind;

constexpr int kMostNestedTerms = 256;
constexpr int kNegation = 3, kComparison = 4, kAddition = 5, kProduct = 6, kUnary = 7;

struct ScriptOperator {
  TermOp op;
  std::string_view text;
  int precedence = 0;  // 0: a function
};
/// How script spells what the text of programs spells otherwise. The first spelling is printed.
constexpr ScriptOperator kOperators[] = {
    {TermOp::kOr, "or", 1},
    {TermOp::kAnd, "and", 2},
    {TermOp::kEqual, "==", kComparison},
    {TermOp::kNotEqual, "!=", kComparison},
    {TermOp::kLessEqual, "<=", kComparison},
    {TermOp::kGreaterEqual, ">=", kComparison},
    {TermOp::kLess, "<", kComparison},
    {TermOp::kGreater, ">", kComparison},
    {TermOp::kAdd, "+", kAddition},
    {TermOp::kSubtract, "-", kAddition},
    {TermOp::kMultiply, "*", kProduct},
    {TermOp::kDivide, "/", kProduct},
    {TermOp::kDivide, "//", kProduct},
    {TermOp::kModulo, "%", kProduct},
    {TermOp::kSelect, "Select"},
    {TermOp::kSelect, "if_then_else"},
    {TermOp::kIsNan, "isnan"},
    {TermOp::kPower, "pow"},
    {TermOp::kDivide, "floordiv"},
    {TermOp::kModulo, "floormod"},
};

/// "0.5", "inff": what the token says, as a constant of that type.
Result<Term> number(const Token& token, DType dtype, bool negative) {
  return at(token, number_of(token.text + "_" + std::string(dtype_name(dtype)), negative));
}

Status refused_symbol(const Token& token) {
  return at(token,
            unsupported("{} is a symbol, which has no value here: give one, or write {} = 16 "
                        "above the class",
                        token.text, token.text));
}

class TermReader {
 public:
  /// `numbers`: the type of numbers that state none.
  TermReader(TextReader& reader, const ScriptScope& scope, std::optional<DType> numbers = {})
      : reader_(reader), scope_(scope), numbers_(numbers) {}

  /// Operators of at least that precedence.
  Result<Term> term(int least) {
    Term left = TRY(operand());
    for (;;) {
      const ScriptOperator* found = infix();
      if (found == nullptr || found->precedence < least) return left;
      const Token here = TRY(take(reader_));
      const Term right = TRY(term(found->precedence + 1));
      const bool reals = is_float(left.dtype());
      if (reals != is_float(right.dtype()) && (reals ? left : right)->op == TermOp::kConstant)
        return at(here, bad_model("{} of {} and {}", here.text, dtype_name(left.dtype()),
                                  dtype_name(right.dtype())));
      left = TRY(at(here, checked_term(found->op, {left, right})));
      if (here.is("/") && !is_float(left.dtype()))
        return at(here, bad_model("/ of integers; // is the division that rounds down"));
      if (here.is("//") && is_float(left.dtype())) return at(here, bad_model("// of real numbers"));
      if (left->depth >= kMostNestedTerms) return too_deep(here);
      const ScriptOperator* next = infix();
      if (found->precedence == kComparison && next != nullptr && next->precedence == kComparison)
        return reader_.expected("parentheses around one of two comparisons");
    }
  }

  /// Behind the '['.
  Result<std::vector<Term>> indices() {
    if (!reader_.is("(") || !TRY(followed_by(reader_, ")")))
      return reader_.list("]", [&] { return term(0); });
    for (const std::string_view mark : {"(", ")", "]"}) TRY(reader_.expect(mark));
    return std::vector<Term>();
  }

 private:
  const ScriptOperator* infix() const {
    for (const ScriptOperator& one : kOperators)
      if (one.precedence > 0 && reader_.is(one.text)) return &one;
    return nullptr;
  }

  static Status too_deep(const Token& here) {
    return at(here, bad_model("terms nested more than {} levels deep", kMostNestedTerms));
  }

  Result<Term> operand() {
    const Token here = reader_.token();
    if (nested_ == kMostNestedTerms) return too_deep(here);
    ++nested_;
    Term read = TRY(operand_here());
    --nested_;
    if (read->depth >= kMostNestedTerms) return too_deep(here);
    return read;
  }

  Result<Term> operand_here() {
    const Token here = reader_.token();
    if (TRY(reader_.accept("("))) {
      Term inner = TRY(term(0));
      TRY(reader_.expect(")"));
      return inner;
    }
    if (TRY(reader_.accept("-"))) {
      if (reader_.is(Kind::kNumber)) return untyped_number(true);
      return at(here, checked_term(TermOp::kNegate, {TRY(operand())}));
    }
    if (reader_.is(Kind::kNumber)) return untyped_number(false);
    if (reader_.is(Kind::kString) && numbers_) return number(TRY(take(reader_)), *numbers_, false);
    if (!reader_.is(Kind::kName)) return reader_.expected("a term");
    TRY(reader_.step());
    if (here.is("not")) return at(here, checked_term(TermOp::kNot, {TRY(term(kNegation))}));
    if (here.is("True") || here.is("False"))
      return integer_constant(here.is("True") ? 1 : 0, DType::kBool);
    if (TRY(reader_.accept("["))) {
      const auto array = scope_.arrays.find(here.text);
      if (array == scope_.arrays.end())
        return at(here, bad_model("there is no {} above", here.text));
      return load(here.text, array->second, TRY(indices()));
    }
    if (TRY(reader_.accept("("))) return call(here);
    if (const auto found = scope_.variables.find(here.text); found != scope_.variables.end())
      return found->second;
    if (const auto found = scope_.numbers.find(here.text); found != scope_.numbers.end())
      return as_type(integer_constant(found->second, DType::kInt32),
                     numbers_.value_or(DType::kInt32));
    if (reader_.symbols() != nullptr)
      if (const auto found = reader_.symbols()->values.find(here.text);
          found != reader_.symbols()->values.end())
        return as_type(integer_constant(found->second, DType::kInt32),
                       numbers_.value_or(DType::kInt32));
    if (numbers_) return refused_symbol(here);
    return at(here, bad_model("there is no {} here", here.text));
  }

  Result<Term> untyped_number(bool negative) {
    const Token token = TRY(take(reader_));
    const bool real = token.text.find_first_of(".eE") != std::string::npos;
    return number(token, numbers_.value_or(real ? DType::kFloat32 : DType::kInt32), negative);
  }

  /// Behind the '('.
  Result<Term> call(const Token& here) {
    const std::string_view name = word(here);
    if (const Result<DType> dtype = parse_dtype(name); dtype.ok()) return conversion(*dtype);
    std::optional<DType> to;  // of T.Cast("float32", x) or T.cast(x, "float32")
    std::vector<Term> args = TRY(reader_.list(")", [&]() -> Result<Term> {
      if (!reader_.is(Kind::kString)) return term(0);
      to = TRY(read_dtype(reader_));
      return Term();
    }));
    std::erase_if(args, [](const Term& arg) { return !arg.defined(); });
    const bool is_cast = name == "Cast" || name == "cast";
    if (is_cast != to.has_value() || (is_cast && args.size() != 1))
      return at(here, bad_model("{} of other arguments than it takes", here.text));
    if (is_cast) return cast(*to, args[0]);
    for (const ScriptOperator& one : kOperators)
      if (one.precedence == 0 && one.text == name)
        return at(here, checked_term(one.op, std::move(args)));
    for (const TermSpelling& one : term_spellings())
      if (one.precedence == 0 && one.text == name)
        return at(here, checked_term(one.op, std::move(args)));
    return at(here, bad_model("there is no function {}", here.text));
  }

  /// T.float32(0.5), T.float32("inf") or T.float32(x), behind the '('.
  Result<Term> conversion(DType dtype) {
    const Lexer::Position start = reader_.position();
    const bool negative = TRY(reader_.accept("-"));
    Term value;
    if ((reader_.is(Kind::kNumber) || reader_.is(Kind::kString)) &&
        TRY(followed_by(reader_, ")"))) {
      value = TRY(number(TRY(take(reader_)), dtype, negative));
    } else {
      TRY(reader_.seek(start));
      value = cast(dtype, TRY(term(0)));
    }
    TRY(reader_.expect(")"));
    return value;
  }

  TextReader& reader_;
  const ScriptScope& scope_;
  const std::optional<DType> numbers_;
  int nested_ = 0;
};

}  // namespace

Result<Term> read_term(TextReader& reader, const ScriptScope& scope) {
  return TermReader(reader, scope).term(0);
}

Result<std::vector<Term>> read_indices(TextReader& reader, const ScriptScope& scope) {
  return TermReader(reader, scope).indices();
}

Result<Term> read_constant(TextReader& reader, const ScriptScope& scope, DType dtype) {
  const Token here = reader.token();
  const Term value = TRY(TermReader(reader, scope, dtype).term(0));
  if (value->op != TermOp::kConstant) return at(here, bad_model("this is no constant"));
  return as_type(value, dtype);
}

Result<int64_t> read_extent(TextReader& reader, const ScriptScope& scope) {
  if (reader.symbols() != nullptr) return reader.symbolic_extent(scope.numbers);
  const Token here = reader.token();
  if (here.kind == Kind::kString) return refused_symbol(here);
  const Term read = TRY(TermReader(reader, scope, DType::kInt64).term(kAddition));
  const std::optional<int64_t> value = known_integer(read);
  if (!value) return at(here, bad_model("this is no integer"));
  return *value;
}

std::string number_script(const Term& constant) {
  if (constant.dtype() == DType::kBool) return constant->integer != 0 ? "True" : "False";
  if (!is_float(constant.dtype())) return std::to_string(constant->integer);
  if (std::isfinite(constant->real)) return decimal_text(constant->real, constant.dtype());
  return fmt::format("\"{}\"", constant->real);
}

Result<std::string> term_script(const Term& term, const ScriptNames& names, int least) {
  const auto operand = [&](size_t i, int precedence) {
    return term_script(term->args[i], names, precedence);
  };
  const auto wrapped = [&](const std::string& text, int precedence) {
    return precedence < least ? "(" + text + ")" : text;
  };
  const auto call = [&](std::string_view function) -> Result<std::string> {
    const auto argument = [&](const Term& arg) { return term_script(arg, names); };
    return fmt::format("T.{}({})", function, TRY(with_commas(term->args, argument)));
  };
  switch (term->op) {
    case TermOp::kConstant:
      return term.dtype() == DType::kInt32
                 ? number_script(term)
                 : fmt::format("T.{}({})", dtype_name(term->dtype), number_script(term));
    case TermOp::kVar: {
      const auto found = names.find(term->name);
      if (found == names.end()) return unsupported("{}, which no loop walks", term->name);
      return found->second;
    }
    case TermOp::kLoad:
      return element_script(term->name, term->args, names);
    case TermOp::kCast:
      return fmt::format("T.Cast(\"{}\", {})", dtype_name(term->dtype), TRY(operand(0, 0)));
    case TermOp::kNot:
      return wrapped("not " + TRY(operand(0, kNegation)), kNegation);
    case TermOp::kNegate: {
      const Term& inside = term->args[0];  // a negated number would read as another number
      const bool number = inside->op == TermOp::kConstant && inside.dtype() == DType::kInt32;
      const std::string text = TRY(operand(0, kUnary));
      return wrapped(number ? "-(" + text + ")" : "-" + text, kUnary);
    }
    default:
      break;
  }
  for (const ScriptOperator& one : kOperators) {
    if (one.op != term->op) continue;
    if (one.precedence == 0) return call(one.text);
    const bool whole = one.op == TermOp::kDivide && !is_float(term->dtype);
    const int left = one.precedence + (one.precedence == kComparison ? 1 : 0);
    return wrapped(fmt::format("{} {} {}", TRY(operand(0, left)), whole ? "//" : one.text,
                               TRY(operand(1, one.precedence + 1))),
                   one.precedence);
  }
  for (const TermSpelling& one : term_spellings())
    if (one.op == term->op) return call(one.text);
  return internal_error("a term without a spelling");
}

Result<std::string> element_script(const std::string& array, const std::vector<Term>& at,
                                   const ScriptNames& names) {
  const auto index = [&](const Term& term) { return term_script(term, names); };
  return fmt::format("{}[{}]", array, at.empty() ? "()" : TRY(with_commas(at, index)));
}

}  // namespace collage::tensor_program
