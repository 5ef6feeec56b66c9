#include "ir/text_parser.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/files.h"
#include "base/json.h"
#include "ir/op.h"
#include "ir/side_file.h"
#include "ir/text_constants.h"
#include "ir/text_lexer.h"

namespace collage {

namespace {

using nlohmann::json;
using Kind = Token::Kind;
constexpr int kMaxFunctionDepth = 32;
constexpr int kMaxNesting = 64;                // of expressions, types and lists inside one another
constexpr size_t kMaxTypes = size_t{1} << 16;  // inside a tuple's type
constexpr size_t kMaxConstants = size_t{1} << 24;

Status at(const Token& token, Status status) {
  return std::move(status).with_context(
      fmt::format("line {}, column {}", token.line, token.column));
}
template <typename T>
Result<T> at(const Token& token, Result<T> result) {
  if (result.ok()) return result;
  return at(token, std::move(result).status());
}

// The metadata section, and the constants it gives.
class Metadata {
 public:
  explicit Metadata(const ParseOptions& options) : options_(options) {}

  Status read(std::string_view text) {
    json parsed = parse_json(text);
    if (!parsed.is_object()) return bad_model("the metadata section is no JSON object");
    if (parsed.contains("relay.Constant")) {
      if (!parsed["relay.Constant"].is_array())
        return bad_model("\"relay.Constant\" of the metadata section is no list");
      entries_ = std::move(parsed["relay.Constant"]);
    }
    if (!parsed.contains("side_file")) return {};
    std::string name =
        parsed["side_file"].is_string() ? parsed["side_file"].get<std::string>() : "";
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return bad_model("\"side_file\" of the metadata section is no plain file name");
    side_tensors_ = TRY(read_side_file(options_.folder / name));
    return {};
  }

  // The constant of meta[relay.Constant][index], annotated with a type or not.
  Result<Expr> constant(size_t index, const std::optional<TensorType>& type) {
    if (index >= kMaxConstants) return bad_model("constant {} is out of range", index);
    if (index < constants_.size() && constants_[index] != nullptr) {
      TRY(check_type(index, constants_[index]->tensor_type(), type));
      return constants_[index];
    }
    Tensor value = TRY(this->value(index, type));
    TRY(check_type(index, {value.shape(), value.dtype()}, type));
    if (constants_.size() <= index) constants_.resize(index + 1);
    return constants_[index] = make_constant(std::move(value));
  }

 private:
  static Status check_type(size_t index, const TensorType& actual,
                           const std::optional<TensorType>& type) {
    if (type && !(*type == actual))
      return bad_model("constant {} is a {}, annotated as {}", index, actual.to_string(),
                       type->to_string());
    return {};
  }

  Result<Tensor> value(size_t index, const std::optional<TensorType>& type) {
    const json entry = index < entries_.size() ? entries_[index] : json();
    if (entry.is_object() && entry.contains("side")) {
      if (!entry["side"].is_number_unsigned() ||
          entry["side"].get<uint64_t>() >= side_tensors_.size())
        return bad_model("constant {} is not in the side file", index);
      return side_tensors_[entry["side"].get<size_t>()];
    }
    if (entry.is_object() && !entry.contains("sha256"))
      return parse_constant_entry(entry).with_context(fmt::format("constant {}", index));
    if (!type)
      return bad_model("constant {} has neither a value nor a type after it (/*Tensor[…]*/)",
                       index);
    if (!options_.constant)
      return bad_model("constant {} is given by its type only, {}, and nothing supplies it", index,
                       type->to_string());
    return options_.constant(*type, index).with_context(fmt::format("constant {}", index));
  }

  const ParseOptions& options_;
  json entries_ = json::array();
  std::vector<Tensor> side_tensors_;
  std::vector<Expr> constants_;
};

struct Signature {
  std::vector<Expr> params;
  Attrs attrs;
  std::optional<Type> result;
  Token start;  // for messages
};

// What names mean in one function.
struct Scope {
  std::unordered_map<std::string, Expr> locals, bindings;
};

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : options_(options), lexer_(text), metadata_(options) {}

  // First the headers (a function may call one defined later) and the metadata, then the bodies.
  Result<Module> module() {
    TRY(step());
    if (token_.is("#[")) TRY(version());
    while (token_.kind != Kind::kEnd) {
      if (token_.is("def") || token_.is("fn")) {
        TRY(header());
      } else if (token_.is("abstract")) {
        TRY(abstract_function());
      } else if (token_.is("#[")) {
        TRY(step());
        if (!token_.is("metadata")) return expected("'metadata'");
        TRY(step());
        if (!token_.is("]")) return expected("']'");
        Token here = token_;
        Status status = metadata_.read(lexer_.rest());
        if (!status) return at(here, std::move(status));
        break;
      } else {
        return expected("'def', 'fn', 'abstract' or '#[metadata]'");
      }
    }
    for (Pending& pending : pending_) {
      lexer_.seek(pending.body);
      TRY(step());
      module_.functions[pending.name] = TRY(body(pending.signature));
    }
    return std::move(module_);
  }

 private:
  struct Pending {
    std::string name;
    Signature signature;
    Lexer::Position body;  // of its '{'
  };

  // ---- tokens
  Status step() {
    position_ = lexer_.position();
    token_ = TRY(lexer_.next());
    return {};
  }
  Status expected(std::string_view what) const {
    return at(token_, bad_model("expected {}, found {}", what, token_.describe()));
  }
  Status expect(std::string_view spelling) {
    if (!token_.is(spelling)) return expected(fmt::format("'{}'", spelling));
    return step();
  }
  Result<bool> accept(std::string_view spelling) {
    if (!token_.is(spelling)) return false;
    TRY(step());
    return true;
  }

  // Counts nesting for as long as it lives.
  struct Nesting {
    explicit Nesting(int& level) : level(level) { ++level; }
    ~Nesting() { --level; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& level;
  };
  Status check_nesting() const {
    if (nesting_ <= kMaxNesting) return {};
    return at(token_, bad_model("nested more than {} levels deep", kMaxNesting));
  }

  // ---- top level
  Status version() {
    TRY(step());
    if (!token_.is("version")) return expected("'version'");
    TRY(step());
    TRY(expect("="));
    if (token_.kind != Kind::kString) return expected("a string");
    if (token_.text != "0.0.5")
      return at(token_, unsupported("text of version {}; this reads 0.0.5", token_.text));
    TRY(step());
    return expect("]");
  }

  Status header() {
    bool named = token_.is("def");
    Token start = token_;
    TRY(step());
    std::string name = "main";
    if (named) {
      if (token_.kind != Kind::kGlobal) return expected("a global name such as @main");
      name = token_.text;
      TRY(step());
    }
    Pending pending{name, TRY(signature()), {}};
    if (!token_.is("{")) return expected("'{'");
    pending.body = position_;
    if (!globals_
             .emplace(name, pending.signature.result
                                ? Type::function(param_types(pending.signature),
                                                 *pending.signature.result)
                                : std::optional<Type>())
             .second)
      return at(start, bad_model("@{} is defined twice", name));
    pending_.push_back(std::move(pending));
    Token open = token_;
    for (int depth = 0;;) {
      if (token_.is("{")) ++depth;
      if (token_.is("}") && --depth == 0) break;
      if (token_.kind == Kind::kEnd) return at(open, bad_model("this '{{' is not closed"));
      TRY(step());
    }
    return step();
  }

  static std::vector<Type> param_types(const Signature& signature) {
    std::vector<Type> types;
    for (const Expr& param : signature.params) types.push_back(param->type());
    return types;
  }

  Status abstract_function() {
    Token start = token_;
    TRY(step());
    if (token_.kind != Kind::kString) return expected("the kind of function as a string");
    std::string kind = token_.text;
    TRY(step());
    if (token_.kind != Kind::kGlobal) return expected("a global name");
    std::string name = token_.text;
    TRY(step());
    TRY(expect(":"));
    Type type = TRY(this->type());
    if (!type.is_function()) return at(start, bad_model("@{} has no function type", name));
    TRY(expect("="));
    if (token_.kind != Kind::kString) return expected("the function's text as a string");
    if (!globals_.emplace(name, type).second)
      return at(start, bad_model("@{} is defined twice", name));
    if (!options_.abstract_function)
      return at(start, unsupported("@{}: functions of kind '{}' cannot be read here", name, kind));
    module_.abstract_functions[name] =
        TRY(at(start, options_.abstract_function(kind, type, token_.text)));
    TRY(step());
    return expect(";");
  }

  // ---- types
  Result<Type> type() {
    Nesting nesting(nesting_);
    TRY(check_nesting());
    Token start = token_;
    if (TRY(accept("("))) {
      std::vector<Type> fields;
      while (!token_.is(")")) {
        fields.push_back(TRY(type()));
        if (!TRY(accept(","))) break;
      }
      TRY(expect(")"));
      return Type::tuple(std::move(fields));
    }
    if (TRY(accept("fn"))) {
      TRY(expect("("));
      std::vector<Type> params;
      while (!token_.is(")")) {
        params.push_back(TRY(type()));
        if (!TRY(accept(","))) break;
      }
      TRY(expect(")"));
      TRY(expect("->"));
      Type result = TRY(type());
      return Type::function(std::move(params), std::move(result));
    }
    if (TRY(accept("Tensor"))) {
      TRY(expect("["));
      TRY(expect("("));
      TensorType tensor;
      while (!token_.is(")")) {
        tensor.shape.push_back(TRY(integer()));
        if (!TRY(accept(","))) break;
      }
      TRY(expect(")"));
      TRY(expect(","));
      tensor.dtype = TRY(dtype());
      TRY(expect("]"));
      TRY(at(start, checked_num_elements(tensor.shape)));
      return Type(std::move(tensor));
    }
    return Type(TensorType{{}, TRY(dtype())});
  }

  Result<DType> dtype() {
    if (token_.kind != Kind::kIdentifier) return expected("a type");
    Result<DType> dtype = parse_dtype(token_.text);
    if (!dtype) return expected("a type");
    TRY(step());
    return dtype;
  }

  Result<int64_t> integer() {
    if (token_.kind != Kind::kNumber) return expected("an integer");
    int64_t value = 0;
    const char* end = token_.text.data() + token_.text.size();
    auto [stop, code] = std::from_chars(token_.text.data(), end, value);
    if (code != std::errc() || (stop != end && std::string_view(stop) != "i64"))
      return expected("an integer");
    TRY(step());
    return value;
  }

  // ---- functions
  Result<Signature> signature() {
    Signature signature;
    signature.start = token_;
    TRY(expect("("));
    while (!token_.is(")")) {
      if (token_.kind == Kind::kLocal && token_.projections.empty()) {
        std::string name = token_.text;
        TRY(step());
        TRY(expect(":"));
        signature.params.push_back(make_var(name, TRY(type())));
      } else if (token_.kind == Kind::kIdentifier || token_.kind == Kind::kString) {
        std::string name = token_.text;
        TRY(step());
        TRY(expect("="));
        signature.attrs.set(name, TRY(attr_value()));
      } else {
        return expected("a parameter such as %x: float32, an attribute, or ')'");
      }
      if (!TRY(accept(","))) break;
    }
    TRY(expect(")"));
    if (TRY(accept("->"))) signature.result = TRY(type());
    return signature;
  }

  // From '{' to behind '}'.
  Result<Function> body(const Signature& signature) {
    if (++function_depth_ > kMaxFunctionDepth)
      return at(token_, bad_model("functions nested more than {} levels deep", kMaxFunctionDepth));
    Scope scope;
    for (const Expr& param : signature.params)
      if (!scope.locals.emplace(as<VarNode>(param)->name, param).second)
        return at(signature.start,
                  bad_model("parameter %{} is declared twice", as<VarNode>(param)->name));
    std::swap(scope_, scope);
    TRY(expect("{"));
    while (TRY(binding())) {
    }
    Token here = token_;
    Expr result = TRY(expression());
    TRY(type_comment_check(result));
    if (!token_.is("}")) return expected("'}' or an operator's arguments");
    TRY(step());
    if (signature.result && !(*signature.result == result->type()))
      return at(here, bad_model("the function's result is a {}, annotated as {}",
                                result->type().to_string(), signature.result->to_string()));
    std::swap(scope_, scope);
    --function_depth_;
    return make_function(signature.params, std::move(result), signature.attrs);
  }

  // Reads `%0 = expression;` (or `let %x = expression;`) if one stands here.
  Result<bool> binding() {
    TRY(accept("let"));
    if ((token_.kind != Kind::kLocal && token_.kind != Kind::kBinding) ||
        !token_.projections.empty())
      return false;
    Token name = token_;
    Lexer::Position back = position_;
    TRY(step());
    if (!TRY(accept("="))) {
      lexer_.seek(back);
      TRY(step());
      return false;
    }
    Expr value = TRY(expression());
    TRY(type_comment_check(value));
    auto& names = name.kind == Kind::kBinding ? scope_.bindings : scope_.locals;
    if (!names.emplace(name.text, std::move(value)).second)
      return at(name, bad_model("%{} is bound twice", name.text));
    TRY(expect(";"));
    return true;
  }

  // Checks a comment /* ty=… */ that stood before the current token.
  Status type_comment_check(const Expr& expr) {
    Lexer::Position back = position_;
    lexer_.seek(back);
    if (!lexer_.enter_comment() || !lexer_.rest().starts_with(" ty=")) {
      lexer_.seek(back);
      return step();
    }
    TRY(step());
    Token start = token_;
    TRY(step());
    TRY(expect("="));
    Type annotated = TRY(type());
    if (!(annotated == expr->type()))
      return at(start, bad_model("the value is a {}, annotated as {}", expr->type().to_string(),
                                 annotated.to_string()));
    lexer_.seek(back);
    return step();
  }

  // ---- expressions
  Result<Expr> expression() {
    Nesting nesting(nesting_);
    TRY(check_nesting());
    Token start = token_;
    switch (token_.kind) {
      case Kind::kLocal:
      case Kind::kBinding:
        return local();
      case Kind::kGlobal: {
        Expr callee = TRY(global());
        if (token_.is("(")) return call(start, std::move(callee));
        return callee;
      }
      case Kind::kNumber: {
        Tensor value = TRY(at(start, parse_scalar_literal(token_.text)));
        TRY(step());
        return make_constant(std::move(value));
      }
      case Kind::kPunctuation:
        if (token_.is("(")) return parenthesised();
        return expected("an expression");
      case Kind::kIdentifier:
        break;
      default:
        return expected("an expression");
    }
    if (token_.is("True") || token_.is("False")) {
      bool value = token_.is("True");
      TRY(step());
      return make_scalar<bool>(value);
    }
    if (token_.is("meta")) return meta();
    if (token_.is("fn")) {
      TRY(step());
      Signature signature = TRY(this->signature());
      // Boxes nest by expression inside one function.
      int outer = nesting_;
      nesting_ = 0;
      Expr function = TRY(body(signature));
      nesting_ = outer;
      return function;
    }
    return operator_call();
  }

  Result<Expr> local() {
    Token name = token_;
    const auto& names = name.kind == Kind::kBinding ? scope_.bindings : scope_.locals;
    auto it = names.find(name.text);
    if (it == names.end()) return at(name, bad_model("%{} is not defined here", name.text));
    Expr value = it->second;
    TRY(step());
    for (int64_t index : name.projections) {
      Expr& item = projections_[{value.get(), index}];
      if (item == nullptr) item = TRY(at(name, make_tuple_get_item(value, index)));
      value = item;
    }
    if (token_.is("(")) return call(name, std::move(value));
    return value;
  }

  Result<Expr> global() {
    auto it = globals_.find(token_.text);
    if (it == globals_.end())
      return at(token_, bad_model("@{} is not defined in this module", token_.text));
    if (!it->second)
      return at(token_, bad_model("@{} is used, so its definition needs a result type (-> …)",
                                  token_.text));
    Expr& var = global_vars_[token_.text];
    if (var == nullptr) var = make_global_var(token_.text, *it->second);
    Expr result = var;
    TRY(step());
    return result;
  }

  Result<Expr> call(const Token& start, Expr callee) {
    TRY(expect("("));
    std::vector<Expr> args;
    while (!token_.is(")")) {
      args.push_back(TRY(expression()));
      if (!TRY(accept(","))) break;
    }
    TRY(expect(")"));
    return at(start, make_function_call(std::move(callee), std::move(args)));
  }

  // The types inside a tuple's type, which repeats those of its fields: a tuple of two times
  // another has twice as many. Tuples nest no deeper than their text may.
  static Status count_types(const Type& type, int depth, size_t& count) {
    if (++count > kMaxTypes) return bad_model("a tuple of more than {} tensors", kMaxTypes);
    if (!type.is_tuple()) return {};
    if (depth == kMaxNesting)
      return bad_model("tuples nested more than {} levels deep", kMaxNesting);
    for (const Type& field : type.fields()) TRY(count_types(field, depth + 1, count));
    return {};
  }

  Result<Expr> parenthesised() {
    Token start = token_;
    TRY(expect("("));
    std::vector<Expr> fields;
    bool comma = false;
    while (!token_.is(")")) {
      fields.push_back(TRY(expression()));
      if (!TRY(accept(","))) break;
      comma = true;
    }
    TRY(expect(")"));
    if (fields.size() == 1 && !comma) return fields[0];
    size_t count = 0;
    for (const Expr& field : fields) TRY(at(start, count_types(field->type(), 1, count)));
    return make_tuple(std::move(fields));
  }

  Result<Expr> meta() {
    Token start = token_;
    TRY(step());
    TRY(expect("["));
    if (!token_.is("relay.Constant")) return expected("'relay.Constant'");
    TRY(step());
    TRY(expect("]"));
    TRY(expect("["));
    int64_t index = TRY(integer());
    if (index < 0) return at(start, bad_model("constant {} is out of range", index));
    if (!token_.is("]")) return expected("']'");
    std::optional<TensorType> annotated;
    if (lexer_.enter_comment()) {
      TRY(step());
      Type type = TRY(this->type());
      if (!type.is_tensor()) return at(start, bad_model("a constant is a tensor"));
      annotated = type.tensor();
      TRY(expect("*"));
      if (!token_.is("/")) return expected("the end of the comment");
    }
    TRY(step());
    return at(start, metadata_.constant(static_cast<size_t>(index), annotated));
  }

  Result<Expr> operator_call() {
    Token name = token_;
    TRY(step());
    const OpDef* op = find_op(name.text);
    if (op == nullptr) return at(name, unsupported("unknown operator '{}'", name.text));
    TRY(expect("("));
    std::vector<Expr> args;
    Attrs attrs;
    while (!token_.is(")")) {
      if (std::optional<std::string> attr = TRY(attr_name())) {
        attrs.set(*attr, TRY(attr_value()));
      } else if (!attrs.empty()) {
        return expected("an attribute or ')'");
      } else {
        args.push_back(TRY(expression()));
      }
      if (!TRY(accept(","))) break;
    }
    TRY(expect(")"));
    return at(name, make_call(*op, std::move(args), std::move(attrs)));
  }

  // Reads `name =` if it stands here.
  Result<std::optional<std::string>> attr_name() {
    if (token_.kind != Kind::kIdentifier && token_.kind != Kind::kString)
      return std::optional<std::string>();
    std::string name = token_.text;
    Lexer::Position back = position_;
    TRY(step());
    if (TRY(accept("="))) return std::optional<std::string>(name);
    lexer_.seek(back);
    TRY(step());
    return std::optional<std::string>();
  }

  Result<AttrValue> attr_value() {
    Nesting nesting(nesting_);
    TRY(check_nesting());
    Token start = token_;
    if (token_.kind == Kind::kString) {
      TRY(step());
      return AttrValue(start.text);
    }
    if (TRY(accept("None"))) return AttrValue(None{});
    if (TRY(accept("True"))) return AttrValue(true);
    if (TRY(accept("False"))) return AttrValue(false);
    if (TRY(accept("["))) return list(start);
    if (token_.kind != Kind::kNumber) return expected("an attribute's value");
    TRY(step());
    // Integers may use all of 64 bits; reals are double whatever their suffix.
    std::string digits = start.text;
    if (digits.ends_with("i64")) digits.resize(digits.size() - 3);
    int64_t integer = 0;
    const char* end = digits.data() + digits.size();
    auto [stop, code] = std::from_chars(digits.data(), end, integer);
    if (code == std::errc() && stop == end) return AttrValue(integer);
    if (digits.ends_with("f64")) {
      digits.resize(digits.size() - 3);
    } else if (digits.ends_with("f") && digits != "inf" && digits != "-inf") {
      digits.pop_back();
    }
    double real = 0;
    end = digits.data() + digits.size();
    auto [real_stop, real_code] = std::from_chars(digits.data(), end, real);
    if (real_code != std::errc() || real_stop != end)
      return at(start, bad_model("'{}' is no number", start.text));
    return AttrValue(real);
  }

  // After '[': a list of integers, of reals, or of lists of integers.
  Result<AttrValue> list(const Token& start) {
    Ints ints;
    std::vector<double> reals;
    IntLists lists;
    size_t count = 0;
    while (!token_.is("]")) {
      AttrValue value = TRY(attr_value());
      ++count;
      if (const auto* i = std::get_if<int64_t>(&value)) {
        ints.push_back(*i);
        reals.push_back(static_cast<double>(*i));
      } else if (const auto* d = std::get_if<double>(&value)) {
        reals.push_back(*d);
      } else if (auto* inner = std::get_if<Ints>(&value)) {
        lists.push_back(std::move(*inner));
      }
      if (!TRY(accept(","))) break;
    }
    TRY(expect("]"));
    if (ints.size() == count) return AttrValue(std::move(ints));
    if (reals.size() == count) return AttrValue(std::move(reals));
    if (lists.size() == count) return AttrValue(std::move(lists));
    return at(start, bad_model("a list holds integers, reals, or lists of integers"));
  }

  const ParseOptions& options_;
  Lexer lexer_;
  Token token_;
  Lexer::Position position_;  // before token_ and the blanks in front of it
  Metadata metadata_;
  Module module_;
  std::vector<Pending> pending_;
  std::map<std::string, std::optional<Type>> globals_;
  std::map<std::string, Expr> global_vars_;
  std::map<std::pair<const ExprNode*, int64_t>, Expr> projections_;
  Scope scope_;
  int function_depth_ = 0, nesting_ = 0;
};

}  // namespace

Result<Module> parse_module(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).module();
}

Result<Function> parse_function(std::string_view text, const ParseOptions& options) {
  Module module = TRY(parse_module(text, options));
  auto it = module.functions.find("main");
  if (it == module.functions.end()) return bad_model("the text has no function @main");
  return it->second;
}

Result<Module> load_module(const std::filesystem::path& path, ParseOptions options) {
  std::string text = TRY(read_file(path));
  options.folder = path.parent_path();
  return parse_module(text, options).with_context(path.string());
}

}  // namespace collage
