#include "ir/pattern_values.h"

#include <cstdlib>
#include <vector>

namespace collage {

using Kind = Token::Kind;

Result<double> parse_number(PatternReader& reader) {
  if (!reader.is(Kind::kNumber)) return reader.expected("a number");
  char* end = nullptr;
  double value = std::strtod(reader.token().text.c_str(), &end);
  if (*end != '\0') return at(reader.token(), "'" + reader.token().text + "' is no number");
  reader.step();
  return value;
}

Result<int64_t> parse_integer(PatternReader& reader, std::string_view what) {
  bool digits = reader.is(Kind::kNumber) && reader.token().text.size() < 18 &&
                reader.token().text.find_first_not_of(
                    "0123456789", reader.token().text[0] == '-') == std::string::npos;
  if (!digits) return reader.expected(what);
  int64_t value = std::strtoll(reader.token().text.c_str(), nullptr, 10);
  reader.step();
  return value;
}

Result<FusionKind> parse_fusion_kind(PatternReader& reader) {
  std::string all;
  for (int k = 0; k <= static_cast<int>(FusionKind::kOpaque); ++k) {
    const auto kind = static_cast<FusionKind>(k);
    const std::string name(fusion_kind_name(kind));
    if ((reader.is(Kind::kString) || reader.is(Kind::kName)) && reader.token().text == name) {
      reader.step();
      return kind;
    }
    all += (k ? ", '" : "'") + name + "'";
  }
  return reader.expected("one of " + all);
}

namespace {

Result<AttrValue> list_value(PatternReader& reader) {
  std::vector<double> reals;
  Ints ints;
  IntLists lists;
  while (!reader.accept("]")) {
    if (reader.is("[")) {
      reader.step();
      Ints inner;
      while (!reader.accept("]")) {
        inner.push_back(TRY(parse_integer(reader, "a whole number")));
        if (!reader.is("]")) TRY(reader.expect(","));
      }
      lists.push_back(std::move(inner));
    } else {
      if (reader.token().text.find_first_of(".eE") == std::string::npos)
        ints.push_back(std::strtoll(reader.token().text.c_str(), nullptr, 10));
      reals.push_back(TRY(parse_number(reader)));
    }
    if (!reader.is("]")) TRY(reader.expect(","));
  }
  if (!lists.empty()) return AttrValue(lists);
  if (ints.size() == reals.size()) return AttrValue(ints);
  return AttrValue(reals);
}

}  // namespace

Result<AttrValue> parse_value(PatternReader& reader) {
  Token start = reader.token();
  if (start.kind == Kind::kString) {
    reader.step();
    return AttrValue(start.text);
  }
  if (reader.accept("True") || reader.accept("true")) return AttrValue(true);
  if (reader.accept("False") || reader.accept("false")) return AttrValue(false);
  if (reader.accept("None")) return AttrValue(None{});
  if (reader.accept("[")) return list_value(reader);
  if (start.kind != Kind::kNumber)
    return reader.expected("a value: a number, a string, True, False, None or a list");
  if (start.text.find_first_of(".eE") == std::string::npos)
    return AttrValue(TRY(parse_integer(reader, "a whole number")));
  return AttrValue(TRY(parse_number(reader)));
}

}  // namespace collage
