#include "partition/rule_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/files.h"
#include "ir/pattern_text.h"
#include "ir/pattern_values.h"
#include "ir/predicate.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/composite.h"
#include "partition/rules/df_pattern.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/only_valid.h"
#include "partition/rules/union_rule.h"

namespace collage {

namespace {

using Kind = Token::Kind;
constexpr int kMaxRuleNesting = 100;
constexpr size_t kMaxRuleLimit = 1'000'000;

class RuleParser {
 public:
  RuleParser(std::string_view text, const PartitionSpec* own) : reader_(text), own_(own) {}

  Result<RuleText> run() {
    std::string definitions;
    while (true) {
      const Token start = reader_.token();
      if (start.kind != Kind::kName || is_rule_word(start.text) || is_pattern_word(start.text) ||
          defined_.count(start.text) != 0)
        break;
      reader_.step();
      if (!reader_.accept("=")) return no_rule(start);
      const RuleText rule = TRY(this->rule());
      TRY(reader_.expect(";", " after the definition"));
      definitions += start.text + " = " + rule.text + "; ";
      defined_.emplace(start.text, rule);
    }
    RuleText result = TRY(rule());
    if (!reader_.is(Kind::kEnd)) return reader_.expected("the end of the text");
    result.text = definitions + result.text;
    if (uses_own_ && own_ == nullptr) result.rule = nullptr;
    return result;
  }

 private:
  // An option of a rule: reads what stands behind its name, and returns that as text.
  struct Option {
    std::string_view name;
    std::function<Result<std::string>()> read;
  };
  using Make = Result<RuleText> (RuleParser::*)();
  static const std::map<std::string, Make, std::less<>>& words() {
    static const std::map<std::string, Make, std::less<>> kWords = {
        {"combine", &RuleParser::combine},       {"composite", &RuleParser::composite},
        {"horizontal", &RuleParser::horizontal}, {"max_coalesce", &RuleParser::max_coalesce},
        {"only_valid", &RuleParser::only_valid}, {"own", &RuleParser::own},
        {"union", &RuleParser::union_of},        {"vertical", &RuleParser::vertical}};
    return kWords;
  }
  static bool is_rule_word(std::string_view word) { return words().find(word) != words().end(); }

  Status no_rule(const Token& found) const {
    std::string all;
    for (const auto& [word, make] : words()) all += word + ", ";
    return at(found,
              fmt::format("expected a rule, found '{}': there are {}patterns, and names that "
                          "are defined before",
                          found.text, all));
  }

  Result<RuleText> rule() {
    const Token start = reader_.token();
    if (++nesting_ > kMaxRuleNesting)
      return at(start, fmt::format("nested more than {} levels deep", kMaxRuleNesting));
    RuleText result;
    const bool name = start.kind == Kind::kName;
    if (const auto known = defined_.find(start.text); name && known != defined_.end()) {
      reader_.step();
      result = known->second;
      result.text = start.text;
    } else if (const auto word = words().find(start.text); name && word != words().end()) {
      reader_.step();
      TRY(reader_.expect("(", " after " + start.text));
      result = TRY((this->*word->second)());
      result.text = start.text + "(" + result.text + ")";
    } else if (name && !is_pattern_word(start.text)) {
      return no_rule(start);
    } else {
      const DFPattern pattern = TRY(read_pattern(reader_));
      result = {std::make_shared<DFPatternPartitionRule>("pattern", pattern, MatchPredicate{},
                                                         SubGraphConfig{0, 0, true}),
                pattern.to_string()};
    }
    --nesting_;
    return result;
  }

  // Options up to the ')', which is taken. As text, each with a comma in front.
  Result<std::string> options(const std::vector<Option>& known) {
    std::string text;
    while (!known.empty() && reader_.accept(",")) {
      const Token name = reader_.token();
      std::string all;
      const Option* option = nullptr;
      for (const Option& one : known) {
        if (reader_.is(one.name)) option = &one;
        all += (all.empty() ? "" : ", ") + std::string(one.name);
      }
      if (option == nullptr) return reader_.expected("one of the options " + all);
      if (text.find(", " + name.text + ": ") != std::string::npos)
        return at(name, fmt::format("'{}' is given twice", name.text));
      reader_.step();
      TRY(reader_.expect(":"));
      text += ", " + name.text + ": " + TRY(option->read());
    }
    if (!reader_.is(")")) return reader_.expected(known.empty() ? "')'" : "',' or ')'");
    reader_.step();
    return text;
  }

  template <typename Count>
  Option count(std::string_view name, Count& to, size_t least) {
    return {
        name, [this, &to, least]() -> Result<std::string> {
          const std::string what =
              fmt::format("a whole number from {} to {}", least, kMaxRuleLimit);
          const Token token = reader_.token();
          const int64_t value = TRY(parse_integer(reader_, what));
          if (value < static_cast<int64_t>(least) || value > static_cast<int64_t>(kMaxRuleLimit))
            return at(token, fmt::format("expected {}, found '{}'", what, token.text));
          to = static_cast<size_t>(value);
          return std::to_string(value);
        }};
  }

  // A predicate of two anchors, $a and the one that follows it or lies beside it, $b.
  Option where(AnchorPair& to) {
    return {"where", [this, &to]() -> Result<std::string> {
              Predicate predicate = TRY(parse_predicate(
                  reader_, [this](const Token& name) -> Result<std::vector<const OpDef*>> {
                    if (name.text == "a" || name.text == "b") return std::vector<const OpDef*>();
                    return at(name.text.empty() ? reader_.token() : name,
                              "expected a property of $a or of $b, the two anchors");
                  }));
              to = [holds = std::move(predicate.holds)](const CallNode& a, const CallNode& b) {
                const auto expr = [](const CallNode& call) { return Expr(Expr(), &call); };
                return holds(expr(a),
                             [&](const std::string& name) { return expr(name == "a" ? a : b); });
              };
              return predicate.text;
            }};
  }

  Result<std::string> joins(std::vector<KindJoin>& to, bool& any) {
    any = reader_.accept("any");
    if (any) to = any_joins();
    if (any || reader_.accept("native")) return std::string(any ? "any" : "native");
    to.clear();
    std::string text;
    TRY(reader_.expect("[", ", 'any' or 'native'"));
    while (!reader_.accept("]")) {
      if (!to.empty()) TRY(reader_.expect(","));
      KindJoin join{};
      join.name = TRY(kinds(join.up_min, join.up_max));
      TRY(reader_.expect("->"));
      join.name += " -> " + TRY(kinds(join.down_min, join.down_max));
      text += (text.empty() ? "" : ", ") + join.name;
      to.push_back(std::move(join));
    }
    return "[" + text + "]";
  }

  // anchor, or elementwise..injective
  Result<std::string> kinds(FusionKind& from, FusionKind& to) {
    from = to = TRY(parse_fusion_kind(reader_));
    std::string text(fusion_kind_name(from));
    if (!reader_.accept(".")) return text;
    TRY(reader_.expect("."));
    const Token last = reader_.token();
    to = TRY(parse_fusion_kind(reader_));
    if (to < from) return at(last, fmt::format("'{}' comes before '{}'", last.text, text));
    return to == from ? text : text + ".." + std::string(fusion_kind_name(to));
  }

  Result<RuleText> own() {
    TRY(options({}));
    uses_own_ = true;
    if (own_ == nullptr) return RuleText{};
    return RuleText{own_->rule, "", own_->merges};
  }

  Result<RuleText> composite() {
    const Token label = reader_.token();
    if (label.kind != Kind::kString) return reader_.expected("a label in quotes");
    const bool plain = std::all_of(label.text.begin(), label.text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!plain || label.text.empty())
      return at(label, "expected a label of letters, digits, '_', '-' and '.'");
    reader_.step();
    TRY(reader_.expect(","));
    RuleText result = TRY(rule());
    TRY(options({}));
    result.rule = std::make_shared<CompositePartitionRule>(label.text, std::move(result.rule));
    result.text = "'" + label.text + "', " + result.text;
    return result;
  }

  Result<RuleText> union_of() {
    RuleText result;
    std::vector<PartitionRulePtr> rules;
    do {
      RuleText one = TRY(rule());
      result.text += (rules.empty() ? "" : ", ") + one.text;
      result.joins_anything |= one.joins_anything;
      rules.push_back(std::move(one.rule));
    } while (reader_.accept(","));
    TRY(reader_.expect(")"));
    result.rule = std::make_shared<UnionPartitionRule>("union", std::move(rules));
    return result;
  }

  Result<RuleText> combine() {
    RuleText result = TRY(rule());
    CombineConfig config;
    config.max_depth = 0;
    config.max_call_depth = 8;
    config.max_ops = config.max_per_exit = 64;
    config.strict = true;
    bool any = false;
    result.text += TRY(options({{"joins", [&] { return joins(config.joins, any); }},
                                count("max_depth", config.max_call_depth, 1),
                                count("max_ops", config.max_ops, 1),
                                count("max_per_exit", config.max_per_exit, 1),
                                count("max_splits", config.max_splits, 0)}));
    result.joins_anything = any;
    result.rule = std::make_shared<CombineByPrimitivesPartitionRule>(
        "combine", std::move(result.rule), std::move(config));
    return result;
  }

  template <typename Rule>
  Result<RuleText> within(SubGraphConfig config, const char* name) {
    RuleText result = TRY(rule());
    result.text += TRY(options(
        {count("max_depth", config.max_depth, 1), count("max_exits", config.max_exits, 1)}));
    config.allow_taps = config.max_exits != 1;
    result.rule = std::make_shared<Rule>(name, std::move(result.rule), config);
    return result;
  }
  Result<RuleText> max_coalesce() {
    return within<MaxCoalescePartitionRule>({0, 0, true}, "max_coalesce");
  }
  Result<RuleText> only_valid() { return within<OnlyValidPartitionRule>({}, "only_valid"); }

  Result<RuleText> horizontal() {
    RuleText result = TRY(rule());
    HorizontalPartitionRule::Options config;
    result.text += TRY(options({count("max_siblings", config.max_siblings, 2),
                                count("argument", config.argument, 0), where(config.accepts)}));
    result.rule = std::make_shared<HorizontalPartitionRule>("siblings", std::move(result.rule),
                                                            std::move(config));
    return result;
  }

  Result<RuleText> vertical() {
    RuleText result = TRY(rule());
    AnchorPair accepts = is_stacked_pair;
    result.text += TRY(options({where(accepts)}));
    result.rule = std::make_shared<VerticalPartitionRule>("stacked", std::move(result.rule),
                                                          std::move(accepts));
    return result;
  }

  PatternReader reader_;
  const PartitionSpec* own_;
  bool uses_own_ = false;
  int nesting_ = 0;
  std::map<std::string, RuleText> defined_;
};

}  // namespace

Result<RuleText> parse_rule(std::string_view text, const PartitionSpec* own) {
  return RuleParser(text, own).run();
}

Result<RuleText> read_rule(const std::string& given, const PartitionSpec* own,
                           const std::filesystem::path& folder) {
  if (given.find('(') != std::string::npos) return parse_rule(given, own);
  const std::filesystem::path file = folder / given;
  const Result<std::string> text = read_file(file);
  if (!text) return usage_error("{}", text.status().to_string());
  return parse_rule(*text, own).with_context(file.string());
}

void set_rule(PartitionSpec& spec, RuleText rule) {
  spec.rule = std::move(rule.rule);
  spec.rule_text = std::move(rule.text);
  spec.merges = rule.joins_anything;
}

}  // namespace collage
