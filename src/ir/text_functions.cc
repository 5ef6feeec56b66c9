#include "ir/text_functions.h"

#include "ir/op.h"
#include "ir/text_attrs.h"
#include "ir/text_constants.h"
#include "ir/text_types.h"

namespace collage {

using Kind = Token::Kind;

namespace {

constexpr int kMaxFunctionDepth = 32;

}  // namespace

Result<Signature> FunctionParser::signature() {
  Signature signature;
  signature.start = reader_.token();
  TRY(reader_.expect("("));
  while (!reader_.is(")")) {
    if (reader_.is(Kind::kLocal) && reader_.token().projections.empty()) {
      std::string name = reader_.token().text;
      TRY(reader_.step());
      TRY(reader_.expect(":"));
      signature.params.push_back(make_var(name, TRY(parse_type(reader_))));
    } else if (reader_.is(Kind::kName) || reader_.is(Kind::kString)) {
      std::string name = reader_.token().text;
      TRY(reader_.step());
      TRY(reader_.expect("="));
      signature.attrs.set(name, TRY(parse_attr_value(reader_)));
    } else {
      return reader_.expected("a parameter such as %x: float32, an attribute, or ')'");
    }
    if (!TRY(reader_.accept(","))) break;
  }
  TRY(reader_.expect(")"));
  if (TRY(reader_.accept("->"))) signature.result = TRY(parse_type(reader_));
  return signature;
}

Result<Function> FunctionParser::body(const Signature& signature) {
  if (++function_depth_ > kMaxFunctionDepth)
    return at(reader_.token(),
              bad_model("functions nested more than {} levels deep", kMaxFunctionDepth));
  Scope scope;
  for (const Expr& param : signature.params)
    if (!scope.locals.emplace(as<VarNode>(param)->name, param).second)
      return at(signature.start,
                bad_model("parameter %{} is declared twice", as<VarNode>(param)->name));
  std::swap(scope_, scope);
  std::vector<Expr> calls;
  std::swap(calls_, calls);
  TRY(reader_.expect("{"));
  while (TRY(binding())) {
  }
  Token here = reader_.token();
  Expr result = TRY(expression());
  TRY(type_comment_check(result));
  if (!reader_.is("}")) return reader_.expected("'}' or an operator's arguments");
  TRY(reader_.step());
  if (signature.result && !(*signature.result == result->type()))
    return at(here, bad_model("the function's result is a {}, annotated as {}",
                              result->type().to_string(), signature.result->to_string()));
  std::swap(scope_, scope);
  std::swap(calls_, calls);
  --function_depth_;
  const Function function = make_function(signature.params, std::move(result), signature.attrs);
  calls_of_[function] = std::move(calls);
  return function;
}

Result<bool> FunctionParser::binding() {
  TRY(reader_.accept("let"));
  if ((!reader_.is(Kind::kLocal) && !reader_.is(Kind::kBinding)) ||
      !reader_.token().projections.empty())
    return false;
  Token name = reader_.token();
  Lexer::Position back = reader_.position();
  TRY(reader_.step());
  if (!TRY(reader_.accept("="))) {
    TRY(reader_.seek(back));
    return false;
  }
  Expr value = TRY(expression());
  TRY(type_comment_check(value));
  auto& names = name.kind == Kind::kBinding ? scope_.bindings : scope_.locals;
  if (!names.emplace(name.text, std::move(value)).second)
    return at(name, bad_model("%{} is bound twice", name.text));
  TRY(reader_.expect(";"));
  return true;
}

Status FunctionParser::type_comment_check(const Expr& expr) {
  Lexer::Position back = reader_.position();
  if (!reader_.enter_comment(back) || !reader_.rest().starts_with(" ty="))
    return reader_.seek(back);
  TRY(reader_.step());
  Token start = reader_.token();
  TRY(reader_.step());
  TRY(reader_.expect("="));
  Type annotated = TRY(parse_type(reader_));
  if (!(annotated == expr->type()))
    return at(start, bad_model("the value is a {}, annotated as {}", expr->type().to_string(),
                               annotated.to_string()));
  return reader_.seek(back);
}

Result<Expr> FunctionParser::expression() {
  TextReader::Nesting nesting(reader_);
  TRY(reader_.check_nesting());
  Token start = reader_.token();
  switch (reader_.token().kind) {
    case Kind::kLocal:
    case Kind::kBinding:
      return local();
    case Kind::kGlobal: {
      Expr callee = TRY(global());
      if (reader_.is("(")) return call(start, std::move(callee));
      return callee;
    }
    case Kind::kNumber: {
      Tensor value = TRY(at(start, parse_scalar_literal(reader_.token().text)));
      TRY(reader_.step());
      return make_constant(std::move(value));
    }
    case Kind::kMark:
      if (reader_.symbols() != nullptr && reader_.is("{")) return symbolic_scalar();
      if (!TRY(reader_.accept("("))) return reader_.expected("an expression");
      return parse_tuple(reader_, start, [&] { return expression(); });
    case Kind::kName:
      break;
    default:
      return reader_.expected("an expression");
  }
  if (reader_.is("True") || reader_.is("False")) {
    bool value = reader_.is("True");
    TRY(reader_.step());
    return make_scalar<bool>(value);
  }
  if (reader_.is("meta")) return meta();
  if (reader_.is("fn")) {
    TRY(reader_.step());
    Signature signature = TRY(this->signature());
    // Boxes nest by expression inside one function.
    const int outer = reader_.set_nesting(0);
    Expr function = TRY(body(signature));
    reader_.set_nesting(outer);
    return function;
  }
  return operator_call();
}

// {2 * n}i64: a scalar that is a term over symbols.
Result<Expr> FunctionParser::symbolic_scalar() {
  const Token start = reader_.token();
  const TextReader::Block term = TRY(reader_.block());
  std::string literal = std::to_string(TRY(at(start, reader_.symbols()->value(term.text, {}))));
  if (reader_.is(Kind::kName)) {
    literal += reader_.token().text;
    TRY(reader_.step());
  }
  return make_constant(TRY(at(start, parse_scalar_literal(literal))));
}

Result<Expr> FunctionParser::local() {
  Token name = reader_.token();
  const auto& names = name.kind == Kind::kBinding ? scope_.bindings : scope_.locals;
  auto it = names.find(name.text);
  if (it == names.end()) return at(name, bad_model("%{} is not defined here", name.text));
  Expr value = it->second;
  TRY(reader_.step());
  for (int64_t index : name.projections) {
    Expr& item = projections_[{value.get(), index}];
    if (item == nullptr) item = TRY(at(name, make_tuple_get_item(value, index)));
    value = item;
  }
  if (reader_.is("(")) return call(name, std::move(value));
  return value;
}

Result<Expr> FunctionParser::global() {
  auto it = globals_.find(reader_.token().text);
  if (it == globals_.end())
    return at(reader_.token(),
              bad_model("@{} is not defined in this module", reader_.token().text));
  if (!it->second)
    return at(reader_.token(),
              bad_model("@{} is used, so its definition needs a result type (-> …)",
                        reader_.token().text));
  Expr& var = global_vars_[reader_.token().text];
  if (var == nullptr) var = make_global_var(reader_.token().text, *it->second);
  Expr result = var;
  TRY(reader_.step());
  return result;
}

std::string FunctionParser::origin_at(const Token& token) const {
  return positions_ ? token.place.to_string() : "";
}

Result<Expr> FunctionParser::call(const Token& start, Expr callee) {
  TRY(reader_.expect("("));
  std::vector<Expr> args = TRY(reader_.list(")", [&] { return expression(); }));
  calls_.push_back(
      TRY(at(start, make_function_call(std::move(callee), std::move(args), origin_at(start)))));
  return calls_.back();
}

Result<Expr> FunctionParser::meta() {
  Token start = reader_.token();
  TRY(reader_.step());
  TRY(reader_.expect("["));
  if (!reader_.is("relay.Constant")) return reader_.expected("'relay.Constant'");
  TRY(reader_.step());
  TRY(reader_.expect("]"));
  TRY(reader_.expect("["));
  int64_t index = TRY(parse_integer(reader_));
  if (index < 0) return at(start, bad_model("constant {} is out of range", index));
  if (!reader_.is("]")) return reader_.expected("']'");
  std::optional<TensorType> annotated;
  if (reader_.enter_comment()) {
    TRY(reader_.step());
    Type type = TRY(parse_type(reader_));
    if (!type.is_tensor()) return at(start, bad_model("a constant is a tensor"));
    annotated = type.tensor();
    TRY(reader_.expect("*"));
    if (!reader_.is("/")) return reader_.expected("the end of the comment");
  }
  TRY(reader_.step());
  return at(start, metadata_.constant(static_cast<size_t>(index), annotated));
}

Result<Expr> FunctionParser::operator_call() {
  Token name = reader_.token();
  TRY(reader_.step());
  const OpDef* op = find_op(name.text);
  if (op == nullptr) return at(name, unsupported("unknown operator '{}'", name.text));
  TRY(reader_.expect("("));
  auto [args, attrs] = TRY(parse_call_arguments(
      reader_, [&] { return expression(); },
      [&](const std::string&) { return parse_attr_value(reader_); }));
  const Expr made =
      TRY(at(name, make_call(*op, std::move(args), std::move(attrs), origin_at(name))));
  const CallNode& call = *as<CallNode>(made);
  if (has_effects(call) || runs_functions(call)) calls_.push_back(made);
  return made;
}

}  // namespace collage
