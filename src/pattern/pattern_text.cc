#include "pattern/pattern_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>

#include "ir/op.h"

namespace collage {

namespace {

constexpr int kMaxNesting = 200;

struct Token {
  enum class Kind { kEnd, kName, kHole, kNumber, kString, kPunctuation, kBad };
  Kind kind = Kind::kEnd;
  std::string text;
  size_t column = 1;
  bool is(std::string_view spelling) const {
    return (kind == Kind::kPunctuation || kind == Kind::kName) && text == spelling;
  }
  std::string describe() const {
    if (kind == Kind::kEnd) return "the end of the pattern";
    return kind == Kind::kString ? "the string '" + text + "'" : "'" + text + "'";
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    Token token;
    token.column = at_ + 1;
    if (at_ == text_.size()) return token;
    char c = text_[at_];
    if (is_letter(c)) return take(token, Token::Kind::kName, [](char x) { return is_word(x); });
    if (c == '$') {
      ++at_;
      return take(token, Token::Kind::kHole, [](char x) { return is_word(x); });
    }
    if (is_digit(c) || (c == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
      ++at_;
      token.text = c;
      // The exponent's sign belongs to the number.
      return take(token, Token::Kind::kNumber, [this](char x) {
        bool sign = (x == '-' || x == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
        return is_digit(x) || x == '.' || x == 'e' || x == 'E' || sign;
      });
    }
    if (c == '\'' || c == '"') return string(token, c);
    token.text = c;
    ++at_;
    token.kind = std::string_view("()[]{}|.,:*").find(c) != std::string_view::npos
                     ? Token::Kind::kPunctuation
                     : Token::Kind::kBad;
    return token;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
  static bool is_word(char c) { return is_letter(c) || is_digit(c); }

  template <typename Accepts>
  Token take(Token token, Token::Kind kind, Accepts&& accepts) {
    token.kind = kind;
    while (at_ < text_.size() && accepts(text_[at_])) token.text += text_[at_++];
    return token;
  }

  Token string(Token token, char quote) {
    ++at_;
    token.kind = Token::Kind::kString;
    while (at_ < text_.size() && text_[at_] != quote) token.text += text_[at_++];
    if (at_ == text_.size()) {
      token.kind = Token::Kind::kBad;
      token.text = quote + token.text;
    } else {
      ++at_;
    }
    return token;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The operators that a pattern's root may be a call of; none when it may be something else.
std::vector<const OpDef*> root_ops(const DFPattern& pattern) {
  if (pattern->kind == PatternKind::kCondition || pattern->kind == PatternKind::kUsedOnce)
    return root_ops(pattern->args[0]);
  std::vector<const OpDef*> ops;
  if (pattern->kind == PatternKind::kAlternative) {
    for (const DFPattern& arg : pattern->args) {
      std::vector<const OpDef*> more = root_ops(arg);
      if (more.empty()) return {};
      ops.insert(ops.end(), more.begin(), more.end());
    }
  } else if (pattern->kind == PatternKind::kCall && !pattern->calls_function) {
    for (const std::string& name : pattern->names) ops.push_back(find_op(name));
  }
  return ops;
}

bool is_function_pattern(const DFPattern& pattern) {
  if (pattern->kind == PatternKind::kCondition) return is_function_pattern(pattern->args[0]);
  return pattern->kind == PatternKind::kFunction;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { step(); }

  Result<DFPattern> run() {
    DFPattern pattern = TRY(alternatives());
    if (token_.kind != Token::Kind::kEnd) return expected("'|' or the end of the pattern");
    return pattern;
  }

 private:
  void step() { token_ = lexer_.next(); }
  static Status at(const Token& token, std::string message) {
    return usage_error("column {}: {}", token.column, message);
  }
  Status expected(std::string_view what) const {
    if (token_.kind == Token::Kind::kBad && token_.text.size() > 1)
      return at(token_, "expected a closing quote for " + token_.text);
    return at(token_, fmt::format("expected {}, found {}", what, token_.describe()));
  }
  Status expect(std::string_view spelling, std::string_view what = "") {
    if (!token_.is(spelling)) return expected(fmt::format("'{}'{}", spelling, what));
    step();
    return {};
  }
  bool accept(std::string_view spelling) {
    if (!token_.is(spelling)) return false;
    step();
    return true;
  }

  Result<DFPattern> alternatives() {
    if (++nesting_ > kMaxNesting)
      return at(token_, fmt::format("nested more than {} levels deep", kMaxNesting));
    DFPattern pattern = TRY(constrained());
    while (accept("|")) pattern = pattern | TRY(constrained());
    --nesting_;
    return pattern;
  }

  // A pattern with its constraints, projections and optional wrappers, from left to right.
  Result<DFPattern> constrained() {
    DFPattern pattern = TRY(primary());
    while (true) {
      if (token_.is("{")) {
        pattern = TRY(attributes(pattern));
      } else if (token_.is(".")) {
        step();
        pattern = TRY(method(pattern));
      } else if (token_.is("(") && is_function_pattern(pattern)) {
        step();
        pattern = is_call_of(pattern, TRY(list(")")));
      } else {
        return pattern;
      }
    }
  }

  // Patterns up to the closing token, which is taken.
  Result<std::vector<DFPattern>> list(std::string_view close) {
    std::vector<DFPattern> patterns;
    if (accept(close)) return patterns;
    while (true) {
      patterns.push_back(TRY(alternatives()));
      if (accept(close)) return patterns;
      if (!token_.is(",")) return expected(fmt::format("',' or '{}'", close));
      step();
    }
  }

  Result<DFPattern> primary() {
    Token start = token_;
    if (accept("*")) return wildcard();
    if (accept("(")) return parenthesised(start);
    if (token_.kind == Token::Kind::kHole) return named();
    if (token_.kind != Token::Kind::kName) return expected("a pattern");
    step();
    const std::string& word = start.text;
    if (word == "_") {
      if (wrapped_.empty()) return at(start, "'_' stands only inside .optional(…)");
      return wrapped_.back();
    }
    static const std::vector<std::string> kWords = {
        "is_op",    "is_op_up_to",       "is_var",      "is_constant", "wildcard",
        "is_tuple", "is_tuple_get_item", "is_function", "dominator"};
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) {
      std::string all;
      for (const std::string& known : kWords) all += (all.empty() ? "" : ", ") + known;
      return at(start, fmt::format("expected a pattern, found '{}': there are *, {}", word, all));
    }
    TRY(expect("(", " after " + word));
    if (word == "is_op") return op_call(start);
    if (word == "is_op_up_to") return kind_call();
    if (word == "is_function") return function();
    if (word == "is_tuple") {
      std::vector<DFPattern> fields = TRY(list(")"));
      return fields.empty() ? is_tuple() : is_tuple(std::move(fields));
    }
    if (word == "is_tuple_get_item") return projection();
    if (word == "dominator") {
      std::vector<DFPattern> parts = TRY(list(")"));
      if (parts.size() != 3)
        return at(start, fmt::format("dominator takes 3 patterns (parent, path, child), not {}",
                                     parts.size()));
      return dominator(parts[0], parts[1], parts[2]);
    }
    if (word == "is_var") {
      std::string name = token_.kind == Token::Kind::kString ? token_.text : "";
      if (token_.kind == Token::Kind::kString) step();
      TRY(expect(")"));
      return is_var(std::move(name));
    }
    TRY(expect(")"));
    return word == "wildcard" ? wildcard() : is_constant();
  }

  // (p) is p; (p, q) and (p,) are tuples.
  Result<DFPattern> parenthesised(const Token&) {
    if (accept(")")) return is_tuple(std::vector<DFPattern>{});
    std::vector<DFPattern> fields = {TRY(alternatives())};
    bool tuple = false;
    while (accept(",")) {
      tuple = true;
      if (token_.is(")")) break;
      fields.push_back(TRY(alternatives()));
    }
    TRY(expect(")"));
    return tuple ? is_tuple(std::move(fields)) : fields[0];
  }

  // $x: the first time a wildcard, or what follows the colon; later the same expression.
  Result<DFPattern> named() {
    Token name = token_;
    if (name.text.empty()) return at(name, "expected a name after '$'");
    step();
    auto it = names_.find(name.text);
    if (!token_.is(":")) {
      if (it == names_.end()) it = names_.emplace(name.text, wildcard()).first;
      return it->second;
    }
    if (it != names_.end()) return at(name, "$" + name.text + " is defined twice");
    step();
    DFPattern pattern = TRY(constrained());
    if (!names_.emplace(name.text, pattern).second)
      return at(name, "$" + name.text + " is defined twice");
    return pattern;
  }

  Result<DFPattern> op_call(const Token& start) {
    std::vector<std::string> names;
    do {
      if (token_.kind != Token::Kind::kString) return expected("an operator's name in quotes");
      if (find_op(token_.text) == nullptr)
        return at(token_, "unknown operator '" + token_.text + "'");
      names.push_back(token_.text);
      step();
    } while (accept(","));
    TRY(expect(")"));
    OpPattern op = is_op_among(names);
    if (!accept("(")) return DFPattern(op);
    std::vector<DFPattern> args = TRY(list(")"));
    for (const std::string& name : names) {
      const OpDef& def = *find_op(name);
      auto count = static_cast<int>(args.size());
      if (count >= def.min_args && (def.max_args < 0 || count <= def.max_args)) continue;
      std::string takes = std::to_string(def.min_args);
      if (def.max_args < 0) takes += " or more";
      if (def.max_args > def.min_args) takes += " to " + std::to_string(def.max_args);
      return at(start, fmt::format("'{}' takes {} arguments, not {}", name, takes, count));
    }
    return op.with_args(std::move(args));
  }

  Result<DFPattern> kind_call() {
    std::optional<FusionKind> kind;
    std::string all;
    for (int k = 0; k <= static_cast<int>(FusionKind::kOpaque); ++k) {
      std::string_view name = fusion_kind_name(static_cast<FusionKind>(k));
      if (token_.kind == Token::Kind::kString && token_.text == name)
        kind = static_cast<FusionKind>(k);
      all += (k ? ", '" : "'") + std::string(name) + "'";
    }
    if (!kind) return expected("one of " + all);
    step();
    TRY(expect(")"));
    OpPattern op = is_op_up_to(*kind);
    if (!accept("(")) return DFPattern(op);
    return op.with_args(TRY(list(")")));
  }

  Result<DFPattern> function() {
    if (accept(")")) return is_function();
    TRY(expect("[", " before the parameters"));
    std::vector<DFPattern> params = TRY(list("]"));
    TRY(expect(",", " before the body"));
    DFPattern body = TRY(alternatives());
    TRY(expect(")"));
    return is_function(std::move(params), std::move(body));
  }

  Result<DFPattern> projection() {
    DFPattern tuple = TRY(alternatives());
    if (accept(")")) return is_tuple_get_item(std::move(tuple));
    TRY(expect(","));
    int64_t index = TRY(integer("a field's number"));
    TRY(expect(")"));
    return is_tuple_get_item(std::move(tuple), index);
  }

  Result<DFPattern> method(const DFPattern& pattern) {
    Token start = token_;
    if (token_.kind == Token::Kind::kNumber)
      return is_tuple_get_item(pattern, TRY(integer("a field's number")));
    if (token_.kind != Token::Kind::kName) return expected("a field's number or a constraint");
    step();
    const std::string& word = start.text;
    TRY(expect("(", " after " + word));
    DFPattern result = pattern;
    if (word == "optional") {
      wrapped_.push_back(pattern);
      DFPattern wrapping = TRY(alternatives());
      wrapped_.pop_back();
      result = wrapping | pattern;
    } else if (word == "has_dtype") {
      result = pattern.has_dtype(TRY(dtype()));
    } else if (word == "has_shape") {
      result = pattern.has_shape(TRY(shape()));
    } else if (word == "has_rank") {
      result = pattern.has_rank(TRY(integer("a number of dimensions")));
    } else if (word == "has_type") {
      result = pattern.has_type(TRY(type()));
    } else if (word == "has_value") {
      double value = TRY(number());
      if (pattern->kind != PatternKind::kConstant)
        return at(start, "has_value stands only after is_constant()");
      result = is_scalar(value);
    } else if (word == "used_once") {
      result = pattern.used_once();
    } else {
      return at(start, fmt::format("unknown constraint '{}': there are optional, has_dtype, "
                                   "has_shape, has_rank, has_type, has_value, used_once",
                                   word));
    }
    TRY(expect(")"));
    return result;
  }

  Result<double> number() {
    if (token_.kind != Token::Kind::kNumber) return expected("a number");
    char* end = nullptr;
    double value = std::strtod(token_.text.c_str(), &end);
    if (*end != '\0') return at(token_, "'" + token_.text + "' is no number");
    step();
    return value;
  }

  Result<int64_t> integer(std::string_view what) {
    bool digits =
        token_.kind == Token::Kind::kNumber && token_.text.size() < 18 &&
        token_.text.find_first_not_of("0123456789", token_.text[0] == '-') == std::string::npos;
    if (!digits) return expected(what);
    int64_t value = std::strtoll(token_.text.c_str(), nullptr, 10);
    step();
    return value;
  }

  Result<DType> dtype() {
    Token start = token_;
    if (start.kind != Token::Kind::kString && start.kind != Token::Kind::kName)
      return expected("a dtype");
    Result<DType> found = parse_dtype(start.text);
    if (!found) return at(start, "unknown dtype '" + start.text + "'");
    step();
    return found;
  }

  // (1, *, 3)
  Result<Shape> shape() {
    TRY(expect("(", " before the dimensions"));
    Shape dims;
    while (!accept(")")) {
      dims.push_back(accept("*") ? -1 : TRY(integer("a dimension or '*'")));
      if (!token_.is(")")) TRY(expect(","));
    }
    return dims;
  }

  // Tensor[(1, 3), float32], or float32 for a scalar.
  Result<Type> type() {
    if (!accept("Tensor")) return Type(TensorType{{}, TRY(dtype())});
    TRY(expect("["));
    Token start = token_;
    Shape dims = TRY(shape());
    if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; }))
      return at(start, "a type has no open dimensions; use has_shape");
    TRY(expect(","));
    DType element = TRY(dtype());
    TRY(expect("]"));
    return Type(TensorType{std::move(dims), element});
  }

  // {groups: 1, padding: [0, 0, 0, 0]}
  Result<DFPattern> attributes(DFPattern pattern) {
    TRY(expect("{"));
    std::vector<const OpDef*> ops = root_ops(pattern);
    do {
      Token name = token_;
      if (name.kind != Token::Kind::kName && name.kind != Token::Kind::kString)
        return expected("an attribute's name");
      for (const OpDef* op : ops) {
        std::string known;
        for (const AttrSpec& spec : op->attrs) {
          if (spec.name == name.text) known = "*";
          if (known != "*") known += (known.empty() ? "" : ", ") + spec.name;
        }
        if (known != "*")
          return at(name, fmt::format("'{}' has no attribute '{}': it has {}", op->name, name.text,
                                      known.empty() ? "none" : known));
      }
      step();
      TRY(expect(":"));
      pattern = pattern.has_attr(name.text, TRY(value()));
    } while (accept(","));
    if (!token_.is("}")) return expected("',' or '}'");
    step();
    return pattern;
  }

  Result<AttrValue> value() {
    Token start = token_;
    if (start.kind == Token::Kind::kString) {
      step();
      return AttrValue(start.text);
    }
    if (accept("True") || accept("true")) return AttrValue(true);
    if (accept("False") || accept("false")) return AttrValue(false);
    if (accept("None")) return AttrValue(None{});
    if (accept("[")) return list_value();
    if (start.kind != Token::Kind::kNumber)
      return expected("a value: a number, a string, True, False, None or a list");
    if (start.text.find_first_of(".eE") == std::string::npos)
      return AttrValue(TRY(integer("a whole number")));
    return AttrValue(TRY(number()));
  }

  Result<AttrValue> list_value() {
    std::vector<double> reals;
    Ints ints;
    IntLists lists;
    while (!accept("]")) {
      if (token_.is("[")) {
        step();
        Ints inner;
        while (!accept("]")) {
          inner.push_back(TRY(integer("a whole number")));
          if (!token_.is("]")) TRY(expect(","));
        }
        lists.push_back(std::move(inner));
      } else {
        if (token_.text.find_first_of(".eE") == std::string::npos)
          ints.push_back(std::strtoll(token_.text.c_str(), nullptr, 10));
        reals.push_back(TRY(number()));
      }
      if (!token_.is("]")) TRY(expect(","));
    }
    if (!lists.empty()) return AttrValue(lists);
    if (ints.size() == reals.size()) return AttrValue(ints);
    return AttrValue(reals);
  }

  Lexer lexer_;
  Token token_;
  int nesting_ = 0;
  std::vector<DFPattern> wrapped_;  // what '_' stands for, by optional(…) that is open
  std::map<std::string, DFPattern> names_;
};

}  // namespace

Result<DFPattern> parse_pattern(std::string_view text) { return Parser(text).run(); }

}  // namespace collage
