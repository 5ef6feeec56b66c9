#include "frontend/script/script_values.h"

#include <algorithm>

#include "base/name_supply.h"
#include "ir/text_attrs.h"

namespace collage::tensor_program {
namespace {

constexpr std::string_view kKeywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_keyword(std::string_view name) {
  return std::count(std::begin(kKeywords), std::end(kKeywords), name) > 0;
}

Result<std::string> read_scope(TextReader& reader) {
  const Token here = reader.token();
  const std::string name = TRY(read_string(reader, "the name of a memory scope"));
  if (name.empty() || name.find_first_of("\"/,") != std::string::npos)
    return at(here, bad_model("'{}' is no memory scope", name));
  return name;
}

}  // namespace

Result<Shape> read_shape(TextReader& reader, const ScriptScope& scope) {
  const Token start = reader.token();
  const std::string_view close = TRY(enter_list(reader, "a shape such as (16, 8)"));
  const Shape shape = TRY(reader.list(close, [&] { return read_extent(reader, scope); }));
  TRY(at(start, checked_num_elements(shape)));
  return shape;
}

Result<DType> read_dtype(TextReader& reader) {
  const Token here = reader.token();
  return at(here, parse_dtype(TRY(read_string(reader, "an element type such as \"float32\""))));
}

Result<TensorType> read_array_type(TextReader& reader, const ScriptScope& scope,
                                   std::string* memory) {
  return read_array_type_to(TRY(enter_list(reader, "'[' or '('")), reader, scope, memory);
}

Result<TensorType> read_array_type_to(std::string_view close, TextReader& reader,
                                      const ScriptScope& scope, std::string* memory) {
  TensorType type{{}, DType::kFloat32};
  const Token start = reader.token();
  const bool has_shape = TRY(accept_keyword(reader, "shape")) || reader.is("(") || reader.is("[");
  if (has_shape) type.shape = TRY(read_shape(reader, scope));
  bool more = !has_shape || TRY(reader.accept(","));
  while (more && !reader.is(close)) {
    if (memory != nullptr && TRY(accept_keyword(reader, "scope"))) {
      *memory = TRY(read_scope(reader));
    } else if (TRY(accept_keyword(reader, "dtype")) || has_shape ||
               reader.is(Token::Kind::kString)) {
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

std::string shape_script(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string array_script(std::string_view what, const TensorType& type, const std::string& memory) {
  return fmt::format("{}({}, \"{}\"{})", what, shape_script(type.shape), dtype_name(type.dtype),
                     memory.empty() ? "" : fmt::format(", scope=\"{}\"", memory));
}

Result<Attrs> read_attrs(TextReader& reader) {
  Attrs attrs;
  TRY(reader.expect("{"));
  while (!reader.is("}")) {
    const std::string name = TRY(read_string(reader, "the name of an attribute as a string"));
    TRY(reader.expect(":"));
    attrs.set(name, TRY(parse_attr_value(reader)));
    if (!TRY(reader.accept(","))) break;
  }
  TRY(reader.expect("}"));
  return attrs;
}

std::string attr_script(const AttrValue& value) {
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    std::string text;
    for (const double real : *reals) text += (text.empty() ? "" : ", ") + attr_script(real);
    return "[" + text + "]";
  }
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return attr_to_string(value);
  const std::string number = number_script(constant(*real, DType::kFloat64));
  return number[0] == '"' ? "float(" + number + ")" : number;
}

Result<std::string> script_name(const std::string& name) {
  const bool plain = NameSupply().fresh(name) == name;  // of letters that names have
  if (plain && !is_keyword(name)) return name;
  return unsupported("{} is no name in script", attr_to_string(AttrValue(name)));
}

Result<std::string> keyword_argument_script(const std::string& name) {
  return is_keyword(name) ? name + "_" : script_name(name);
}

std::string keyword_argument(const std::string& script) {
  const std::string name = script.substr(0, script.find_last_not_of('_') + 1);
  return name + "_" == script && is_keyword(name) ? name : script;
}

}  // namespace collage::tensor_program
