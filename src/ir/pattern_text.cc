#include "ir/pattern_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/op.h"
#include "ir/pattern_reader.h"
#include "ir/pattern_values.h"
#include "ir/predicate.h"

namespace collage {

namespace {

using Kind = Token::Kind;
constexpr int kMaxNesting = 200;
constexpr std::string_view kPatternWords[] = {
    "is_op",    "is_op_up_to",       "is_var",      "is_constant", "wildcard",
    "is_tuple", "is_tuple_get_item", "is_function", "dominator"};

// The operators that a pattern's root may be a call of; none when it may be something else.
std::vector<const OpDef*> root_ops(const DFPattern& pattern) {
  if (pattern->kind == PatternKind::kCondition || pattern->kind == PatternKind::kUsedOnce ||
      pattern->kind == PatternKind::kNamed)
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
  if (pattern->kind == PatternKind::kCondition || pattern->kind == PatternKind::kNamed)
    return is_function_pattern(pattern->args[0]);
  return pattern->kind == PatternKind::kFunction;
}

class PatternParser {
 public:
  explicit PatternParser(PatternReader& reader) : reader_(reader) {}

  Result<DFPattern> alternatives() {
    if (++nesting_ > kMaxNesting)
      return at(reader_.token(), fmt::format("nested more than {} levels deep", kMaxNesting));
    DFPattern pattern = TRY(constrained());
    while (reader_.accept("|")) pattern = pattern | TRY(constrained());
    --nesting_;
    return pattern;
  }

 private:
  // A pattern with its constraints, projections and optional wrappers, from left to right.
  Result<DFPattern> constrained() {
    DFPattern pattern = TRY(primary());
    while (true) {
      if (reader_.accept(".")) {
        pattern = TRY(method(pattern));
      } else if (reader_.is("(") && is_function_pattern(pattern)) {
        reader_.step();
        pattern = is_call_of(pattern, TRY(list(")")));
      } else {
        return pattern;
      }
    }
  }

  // Patterns up to the closing token, which is taken.
  Result<std::vector<DFPattern>> list(std::string_view close) {
    std::vector<DFPattern> patterns;
    if (reader_.accept(close)) return patterns;
    while (true) {
      patterns.push_back(TRY(alternatives()));
      if (reader_.accept(close)) return patterns;
      if (!reader_.is(",")) return reader_.expected(fmt::format("',' or '{}'", close));
      reader_.step();
    }
  }

  Result<DFPattern> primary() {
    Token start = reader_.token();
    if (reader_.accept("*")) return wildcard();
    if (reader_.accept("(")) return parenthesised();
    if (reader_.is(Kind::kLocal)) return named();
    if (!reader_.is(Kind::kName)) return reader_.expected("a pattern");
    reader_.step();
    const std::string& word = start.text;
    if (word == "_") {
      if (wrapped_.empty()) return at(start, "'_' stands only inside .optional(…)");
      return wrapped_.back();
    }
    if (!is_pattern_word(word)) {
      std::string all;
      for (std::string_view known : kPatternWords)
        all += (all.empty() ? "" : ", ") + std::string(known);
      return at(start, fmt::format("expected a pattern, found '{}': there are *, {}", word, all));
    }
    TRY(reader_.expect("(", " after " + word));
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
      std::string name = reader_.is(Kind::kString) ? reader_.token().text : "";
      if (reader_.is(Kind::kString)) reader_.step();
      TRY(reader_.expect(")"));
      return is_var(std::move(name));
    }
    TRY(reader_.expect(")"));
    return word == "wildcard" ? wildcard() : is_constant();
  }

  // (p) is p; (p, q) and (p,) are tuples.
  Result<DFPattern> parenthesised() {
    if (reader_.accept(")")) return is_tuple(std::vector<DFPattern>{});
    std::vector<DFPattern> fields = {TRY(alternatives())};
    bool tuple = false;
    while (reader_.accept(",")) {
      tuple = true;
      if (reader_.is(")")) break;
      fields.push_back(TRY(alternatives()));
    }
    TRY(reader_.expect(")"));
    return tuple ? is_tuple(std::move(fields)) : fields[0];
  }

  // $x: the first time a wildcard, or what follows the colon; later the same expression.
  Result<DFPattern> named() {
    Token name = reader_.token();
    if (name.text.empty()) return at(name, "expected a name after '$'");
    reader_.step();
    auto it = names_.find(name.text);
    if (!reader_.is(":")) {
      if (it == names_.end()) it = names_.emplace(name.text, wildcard().named(name.text)).first;
      return it->second;
    }
    if (it != names_.end()) return at(name, "$" + name.text + " is defined twice");
    reader_.step();
    DFPattern pattern = TRY(constrained()).named(name.text);
    if (!names_.emplace(name.text, pattern).second)
      return at(name, "$" + name.text + " is defined twice");
    return pattern;
  }

  Result<DFPattern> op_call(const Token& start) {
    std::vector<std::string> names;
    do {
      if (!reader_.is(Kind::kString)) return reader_.expected("an operator's name in quotes");
      if (find_op(reader_.token().text) == nullptr)
        return at(reader_.token(), "unknown operator '" + reader_.token().text + "'");
      names.push_back(reader_.token().text);
      reader_.step();
    } while (reader_.accept(","));
    TRY(reader_.expect(")"));
    OpPattern op = is_op_among(names);
    if (!reader_.accept("(")) return DFPattern(op);
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
    const FusionKind kind = TRY(parse_fusion_kind(reader_));
    TRY(reader_.expect(")"));
    OpPattern op = is_op_up_to(kind);
    if (!reader_.accept("(")) return DFPattern(op);
    return op.with_args(TRY(list(")")));
  }

  Result<DFPattern> function() {
    if (reader_.accept(")")) return is_function();
    TRY(reader_.expect("[", " before the parameters"));
    std::vector<DFPattern> params = TRY(list("]"));
    TRY(reader_.expect(",", " before the body"));
    DFPattern body = TRY(alternatives());
    TRY(reader_.expect(")"));
    return is_function(std::move(params), std::move(body));
  }

  Result<DFPattern> projection() {
    DFPattern tuple = TRY(alternatives());
    if (reader_.accept(")")) return is_tuple_get_item(std::move(tuple));
    TRY(reader_.expect(","));
    int64_t index = TRY(parse_integer(reader_, "a field's number"));
    TRY(reader_.expect(")"));
    return is_tuple_get_item(std::move(tuple), index);
  }

  Result<DFPattern> method(const DFPattern& pattern) {
    Token start = reader_.token();
    if (reader_.is(Kind::kNumber))
      return is_tuple_get_item(pattern, TRY(parse_integer(reader_, "a field's number")));
    if (!reader_.is(Kind::kName)) return reader_.expected("a field's number or a constraint");
    reader_.step();
    const std::string& word = start.text;
    TRY(reader_.expect("(", " after " + word));
    DFPattern result = pattern;
    if (word == "optional") {
      std::string name;
      for (int i = 0; names_.count(name = fmt::format("_{}", i)) != 0; ++i) {
      }
      wrapped_.push_back(pattern.named(name));
      names_.emplace(name, wrapped_.back());
      const DFPattern wrapping = TRY(alternatives());
      result = wrapping | wrapped_.back();
      wrapped_.pop_back();
    } else if (word == "has_value") {
      double value = TRY(parse_number(reader_));
      if (pattern->kind != PatternKind::kConstant)
        return at(start, "has_value stands only after is_constant()");
      result = is_scalar(value);
    } else if (word == "used_once") {
      result = pattern.used_once();
    } else if (word == "where") {
      std::map<std::string, DFPattern> names;
      const OpsOfName ops_of = [&](const Token& name) -> Result<std::vector<const OpDef*>> {
        if (name.text.empty()) return root_ops(pattern);
        const auto found = names_.find(name.text);
        if (found == names_.end()) return at(name, "there is no $" + name.text + " before");
        names.insert(*found);
        return root_ops(found->second);
      };
      Predicate predicate = TRY(parse_predicate(reader_, ops_of));
      result = pattern.where(std::move(predicate), std::move(names));
    } else {
      return at(
          start,
          fmt::format("unknown constraint '{}': there are optional, has_value, used_once, where",
                      word));
    }
    TRY(reader_.expect(")"));
    return result;
  }

  PatternReader& reader_;
  int nesting_ = 0;
  std::vector<DFPattern> wrapped_;  // what '_' stands for, by optional(…) that is open
  std::map<std::string, DFPattern> names_;
};

}  // namespace

bool is_pattern_word(std::string_view word) {
  return std::find(std::begin(kPatternWords), std::end(kPatternWords), word) !=
         std::end(kPatternWords);
}

Result<DFPattern> read_pattern(PatternReader& reader) {
  return PatternParser(reader).alternatives();
}

Result<DFPattern> parse_pattern(std::string_view text) {
  PatternReader reader(text);
  DFPattern pattern = TRY(read_pattern(reader));
  if (!reader.is(Kind::kEnd)) return reader.expected("'|' or the end of the text");
  return pattern;
}

}  // namespace collage
