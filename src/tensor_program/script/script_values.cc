#include "tensor_program/script/script_values.h"

#include "ir/text_attrs.h"
#include "tensor_program/checked_term.h"
#include "tensor_program/program_tokens.h"

namespace collage::tensor_program {
namespace {

using Kind = Token::Kind;

constexpr int kMostNestedTerms = 256;
constexpr int kNegation = 3, kComparison = 4, kAddition = 5;

struct ScriptOperator {
  std::string_view text;
  TermOp op;
  int precedence = 0;
};
constexpr ScriptOperator kOperators[] = {
    {"or", TermOp::kOr, 1},
    {"and", TermOp::kAnd, 2},
    {"==", TermOp::kEqual, kComparison},
    {"!=", TermOp::kNotEqual, kComparison},
    {"<=", TermOp::kLessEqual, kComparison},
    {">=", TermOp::kGreaterEqual, kComparison},
    {"<", TermOp::kLess, kComparison},
    {">", TermOp::kGreater, kComparison},
    {"+", TermOp::kAdd, kAddition},
    {"-", TermOp::kSubtract, kAddition},
    {"*", TermOp::kMultiply, kAddition + 1},
    {"/", TermOp::kDivide, kAddition + 1},
    {"//", TermOp::kDivide, kAddition + 1},
    {"%", TermOp::kModulo, kAddition + 1},
};
/// TVM's names of functions that have others in the text of programs.
constexpr ScriptOperator kAliases[] = {
    {"Select", TermOp::kSelect},   {"if_then_else", TermOp::kSelect}, {"isnan", TermOp::kIsNan},
    {"floordiv", TermOp::kDivide}, {"floormod", TermOp::kModulo},     {"pow", TermOp::kPower},
};

Result<Term> script_number(const Token& token, std::optional<DType> dtype, bool negative) {
  const std::string& text = token.text;
  const bool real = text.find_first_of(".eE") != std::string::npos;
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos)
    return at(token, bad_model("'{}' is no number", text));
  const DType type = dtype ? *dtype : real ? DType::kFloat32 : DType::kInt32;
  return at(token, number_of(text + "_" + std::string(dtype_name(type)), negative));
}

Status refused_symbol(const Token& token) {
  return at(token, unsupported("{} is a symbol, and shapes of script are numbers: write {} = 16, "
                               "or what it is, above the class",
                               token.text, token.text));
}

class TermReader {
 public:
  /// `extents`: of named numbers alone.
  TermReader(TextReader& reader, const ScriptScope& scope, bool extents = false)
      : reader_(reader), scope_(scope), extents_(extents) {}

  /// Operators of at least that precedence.
  Result<Term> term(int least) {
    Term left = TRY(operand());
    for (;;) {
      const ScriptOperator* found = binary();
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
      const ScriptOperator* next = binary();
      if (found->precedence == kComparison && next != nullptr && next->precedence == kComparison)
        return reader_.expected("parentheses around one of two comparisons");
    }
  }

  Result<Term> constant(DType dtype) {
    const Lexer::Position start = reader_.position();
    const Token here = reader_.token();
    const bool negative = TRY(reader_.accept("-"));
    if (reader_.is(Kind::kNumber)) return script_number(TRY(take(reader_)), dtype, negative);
    TRY(reader_.seek(start));
    const Term value = TRY(term(0));
    if (value->op != TermOp::kConstant) return at(here, bad_model("this is no constant"));
    return constant_as(value, dtype);
  }

 private:
  const ScriptOperator* binary() const {
    for (const ScriptOperator& one : kOperators)
      if (reader_.is(one.text)) return &one;
    return nullptr;
  }

  static Status too_deep(const Token& here) {
    return at(here, bad_model("terms nested more than {} levels deep", kMostNestedTerms));
  }

  Result<Term> operand() {
    const Token here = reader_.token();
    if (nested_ == kMostNestedTerms) return too_deep(here);
    ++nested_;
    Result<Term> read = operand_here();
    --nested_;
    if (read.ok() && (*read)->depth >= kMostNestedTerms) return too_deep(here);
    return read;
  }

  Result<Term> operand_here() {
    if (!reader_.is(Kind::kName) && !reader_.is(Kind::kNumber) && !reader_.is("(") &&
        !reader_.is("-") && !(extents_ && reader_.is(Kind::kString)))
      return reader_.expected("a term");
    const Token here = TRY(take(reader_));
    const std::optional<DType> whole = extents_ ? std::optional(DType::kInt64) : std::nullopt;
    if (here.is("(")) {
      Term inner = TRY(term(0));
      TRY(reader_.expect(")"));
      return inner;
    }
    if (here.is("-")) {
      if (reader_.is(Kind::kNumber)) return script_number(TRY(take(reader_)), whole, true);
      return at(here, checked_term(TermOp::kNegate, {TRY(operand())}));
    }
    if (here.is("not")) return at(here, checked_term(TermOp::kNot, {TRY(term(kNegation))}));
    if (here.kind == Kind::kNumber) return script_number(here, whole, false);
    if (here.is("True") || here.is("False"))
      return integer_constant(here.is("True") ? 1 : 0, DType::kBool);
    if (!extents_ && TRY(reader_.accept("["))) return element(here);
    if (!extents_ && TRY(reader_.accept("("))) return call(here);
    if (const auto found = scope_.variables.find(here.text);
        found != scope_.variables.end() && !extents_)
      return found->second;
    if (const auto found = scope_.numbers.find(here.text); found != scope_.numbers.end())
      return integer_constant(found->second, whole.value_or(DType::kInt32));
    if (extents_) return refused_symbol(here);
    return at(here, bad_model("there is no {} here", here.text));
  }

  /// Behind the '['.
  Result<Term> element(const Token& here) {
    const std::optional<DType> dtype = scope_.array ? scope_.array(here.text) : std::nullopt;
    if (!dtype) return at(here, bad_model("there is no {} above", here.text));
    if (reader_.is("(") && TRY(followed_by(reader_, ")"))) {  // x[()], without dimensions
      for (int i = 0; i < 2; ++i) TRY(reader_.step());
      TRY(reader_.expect("]"));
      return load(here.text, *dtype, {});
    }
    return load(here.text, *dtype, TRY(reader_.list("]", [&] { return term(0); })));
  }

  /// Behind the '('.
  Result<Term> call(const Token& here) {
    const std::string name = here.text.starts_with("T.") ? here.text.substr(2) : here.text;
    if (const Result<DType> dtype = parse_dtype(name); dtype.ok()) return conversion(here, *dtype);
    if (name == "Cast" || name == "cast") return cast_call(name == "Cast");
    std::vector<Term> args = TRY(reader_.list(")", [&] { return term(0); }));
    for (const ScriptOperator& alias : kAliases)
      if (alias.text == name) return at(here, checked_term(alias.op, std::move(args)));
    for (const TermSpelling& spelling : term_spellings())
      if (spelling.precedence == 0 && spelling.text == name)
        return at(here, checked_term(spelling.op, std::move(args)));
    return at(here, bad_model("there is no function {}", here.text));
  }

  /// T.float32(0.5), T.float32("inf") or T.float32(x), behind the '('.
  Result<Term> conversion(const Token& here, DType dtype) {
    Term value;
    if (reader_.is(Kind::kString)) {
      std::string text = TRY(take(reader_)).text;
      const bool negative = text.starts_with("-");
      if (negative) text = text.substr(1);
      if (!is_float(dtype) || (text != "inf" && text != "nan"))
        return at(here, bad_model("\"{}\" is no {}", text, dtype_name(dtype)));
      value = TRY(number_of(text + "_" + std::string(dtype_name(dtype)), negative));
    } else {
      const Lexer::Position start = reader_.position();
      const bool negative = TRY(reader_.accept("-"));
      const bool number = dtype != DType::kBool && reader_.is(Kind::kNumber);
      if (number && TRY(followed_by(reader_, ")"))) {
        value = TRY(script_number(TRY(take(reader_)), dtype, negative));
      } else {
        TRY(reader_.seek(start));
        value = cast(dtype, TRY(term(0)));
      }
    }
    TRY(reader_.expect(")"));
    return value;
  }

  /// T.Cast("float32", x) or T.cast(x, "float32"), behind the '('.
  Result<Term> cast_call(bool type_first) {
    Term value;
    if (!type_first) {
      value = TRY(term(0));
      TRY(reader_.expect(","));
    }
    const DType dtype = TRY(read_dtype(reader_));
    if (type_first) {
      TRY(reader_.expect(","));
      value = TRY(term(0));
    }
    TRY(reader_.expect(")"));
    return cast(dtype, value);
  }

  TextReader& reader_;
  const ScriptScope& scope_;
  const bool extents_;
  int nested_ = 0;
};

}  // namespace

Term constant_as(const Term& constant, DType dtype) {
  if (constant.dtype() == dtype) return constant;
  if (is_float(constant.dtype())) return tensor_program::constant(constant->real, dtype);
  if (is_float(dtype))
    return tensor_program::constant(static_cast<double>(constant->integer), dtype);
  return integer_constant(constant->integer, dtype);
}

Result<Term> read_term(TextReader& reader, const ScriptScope& scope) {
  return TermReader(reader, scope).term(0);
}

Result<Term> read_constant(TextReader& reader, const ScriptScope& scope, DType dtype) {
  return TermReader(reader, scope).constant(dtype);
}

Result<int64_t> read_extent(TextReader& reader, const ScriptScope& scope) {
  const Token here = reader.token();
  const Term read = TRY(TermReader(reader, scope, true).term(kAddition));
  const std::optional<int64_t> value = known_integer(read);
  if (!value) return at(here, bad_model("this is no integer"));
  return *value;
}

Result<Shape> read_shape(TextReader& reader, const ScriptScope& scope) {
  const Token open = reader.token();
  if (!open.is("(") && !open.is("[")) return reader.expected("a shape such as (16, 8)");
  TRY(reader.step());
  const Shape shape =
      TRY(reader.list(open.is("(") ? ")" : "]", [&] { return read_extent(reader, scope); }));
  TRY(at(open, checked_num_elements(shape)));
  return shape;
}

Result<DType> read_dtype(TextReader& reader) {
  const Token here = reader.token();
  return at(here, parse_dtype(TRY(read_string(reader, "an element type such as \"float32\""))));
}

Result<TensorType> read_array_type(TextReader& reader, const ScriptScope& scope,
                                   std::string* memory) {
  const Token open = reader.token();
  if (!open.is("(") && !open.is("[")) return reader.expected("'[' or '('");
  TRY(reader.step());
  return read_array_type_to(open.is("(") ? ")" : "]", reader, scope, memory);
}

Result<TensorType> read_array_type_to(std::string_view close, TextReader& reader,
                                      const ScriptScope& scope, std::string* memory) {
  TensorType type{{}, DType::kFloat32};
  const Token start = reader.token();
  if (TRY(reader.accept("shape"))) TRY(reader.expect("="));
  bool more = true;
  const bool bracketed = reader.is("(") || reader.is("[");
  if (bracketed) {
    type.shape = TRY(read_shape(reader, scope));
    more = TRY(reader.accept(","));
  }
  while (more && !reader.is(close)) {
    const bool named = TRY(followed_by(reader, "="));
    if (named && memory != nullptr && TRY(reader.accept("scope"))) {
      TRY(reader.expect("="));
      const Token here = reader.token();
      *memory = TRY(read_string(reader, "the name of a memory scope"));
      if (memory->empty() || memory->find_first_of("\"/,") != std::string::npos)
        return at(here, bad_model("'{}' is no memory scope", *memory));
    } else if (named || bracketed || reader.is(Kind::kString)) {
      if (TRY(reader.accept("dtype"))) TRY(reader.expect("="));
      type.dtype = TRY(read_dtype(reader));
    } else {  // T.alloc(16, 128, 8)
      type.shape.push_back(TRY(read_extent(reader, scope)));
    }
    more = TRY(reader.accept(","));
  }
  TRY(reader.expect(close));
  TRY(at(start, checked_num_elements(type.shape)));
  return type;
}

Result<AttrValue> read_attr_value(TextReader& reader) {
  if (!reader.is("float")) return parse_attr_value(reader);
  TRY(reader.step());
  TRY(reader.expect("("));
  const Token here = reader.token();
  const std::string text = TRY(read_string(reader, "\"inf\", \"-inf\" or \"nan\""));
  TRY(reader.expect(")"));
  return AttrValue(TRY(at(here, number_of(text + "_float64", false)))->real);
}

Result<Attrs> read_attrs(TextReader& reader) {
  Attrs attrs;
  TRY(reader.expect("{"));
  while (!reader.is("}")) {
    const std::string name = TRY(read_string(reader, "the name of an attribute as a string"));
    TRY(reader.expect(":"));
    attrs.set(name, TRY(read_attr_value(reader)));
    if (!TRY(reader.accept(","))) break;
  }
  TRY(reader.expect("}"));
  return attrs;
}

}  // namespace collage::tensor_program
