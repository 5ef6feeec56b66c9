#include "ir/text_attrs.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "ir/op.h"

namespace collage {

using Kind = Token::Kind;

namespace {

// After '[' or '(': a list of integers, of reals, or of lists of integers.
Result<AttrValue> list(TextReader& reader, const Token& start) {
  Ints ints;
  std::vector<double> reals;
  IntLists lists;
  std::vector<AttrValue> values =
      TRY(reader.list(start.is("[") ? "]" : ")", [&] { return parse_attr_value(reader); }));
  for (AttrValue& value : values) {
    if (const auto* i = std::get_if<int64_t>(&value)) {
      ints.push_back(*i);
      reals.push_back(static_cast<double>(*i));
    } else if (const auto* d = std::get_if<double>(&value)) {
      reals.push_back(*d);
    } else if (auto* inner = std::get_if<Ints>(&value)) {
      lists.push_back(std::move(*inner));
    }
  }
  if (ints.size() == values.size()) return AttrValue(std::move(ints));
  if (reals.size() == values.size()) return AttrValue(std::move(reals));
  if (lists.size() == values.size()) return AttrValue(std::move(lists));
  return at(start, bad_model("a list holds integers, reals, or lists of integers"));
}

// Whether the text is a list in parentheses: (n), (n, 4), but not (n + 1) or (n + 1) / 2.
bool is_list(std::string_view text, bool has_operator) {
  int depth = 0;
  for (size_t i = 0; i < text.size() && text[0] == '('; ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ',' && depth == 1) return true;
    if (text[i] == ')' && --depth == 0) return i + 1 == text.size() && !has_operator;
  }
  return false;
}

// Whether the current token begins a term over symbols.
bool begins_term(const TextReader& reader) {
  const TextSymbols* symbols = reader.symbols();
  if (symbols == nullptr || reader.is(Kind::kString) || reader.is("[")) return false;
  const std::string_view text = reader.item();
  const bool has_operator = text.find_first_of("*/%") != std::string_view::npos ||
                            text.find(" + ") != std::string_view::npos ||
                            text.find(" - ") != std::string_view::npos;
  if (is_list(text, has_operator)) return false;
  bool has_symbol = has_operator;
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t i = 0, end = 0; i < text.size() && !has_symbol; i = end + 1) {
    for (end = i; end < text.size() && is_part(text[end]);) ++end;
    has_symbol = symbols->values.count(std::string(text.substr(i, end - i))) != 0;
  }
  return has_symbol;
}

}  // namespace

Result<std::optional<std::string>> parse_attr_name(TextReader& reader) {
  if (!reader.is(Kind::kName) && !reader.is(Kind::kString)) return std::optional<std::string>();
  std::string name = reader.token().text;
  Lexer::Position back = reader.position();
  TRY(reader.step());
  if (TRY(reader.accept("="))) return std::optional<std::string>(name);
  TRY(reader.seek(back));
  return std::optional<std::string>();
}

Result<AttrValue> parse_attr_value(TextReader& reader) {
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  Token start = reader.token();
  if (begins_term(reader)) return AttrValue(TRY(reader.symbolic_extent()));
  if (reader.is(Kind::kString)) {
    TRY(reader.step());
    return AttrValue(start.text);
  }
  if (TRY(reader.accept("None"))) return AttrValue(None{});
  if (TRY(reader.accept("True"))) return AttrValue(true);
  if (TRY(reader.accept("False"))) return AttrValue(false);
  if (TRY(reader.accept("[")) || TRY(reader.accept("("))) return list(reader, start);
  const bool in_quotes = TRY(reader.accept("float"));
  if (in_quotes) TRY(reader.expect("("));
  std::string digits = TRY(reader.accept("-")) ? "-" : "";  // of dialects without signed numbers
  start = reader.token();
  if (!reader.is(in_quotes ? Kind::kString : Kind::kNumber))
    return reader.expected("an attribute's value");
  digits += start.text;
  TRY(reader.step());
  if (in_quotes) TRY(reader.expect(")"));
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

std::vector<std::pair<std::string, AttrValue>> stated_attrs(const CallNode& call) {
  std::vector<std::pair<std::string, AttrValue>> stated;
  for (const AttrSpec& spec : call.op->attrs) {
    const AttrValue* value = call.attrs.find(spec.name);
    if (value != nullptr && (spec.required || !(*value == spec.default_value)))
      stated.emplace_back(spec.name, *value);
  }
  if (!call.op->has_open_attrs) return stated;
  for (const auto& entry : call.attrs.entries())
    if (std::none_of(call.op->attrs.begin(), call.op->attrs.end(),
                     [&](const AttrSpec& spec) { return spec.name == entry.first; }))
      stated.push_back(entry);
  return stated;
}

}  // namespace collage
