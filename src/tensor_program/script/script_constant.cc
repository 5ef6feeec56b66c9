#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "ir/text_constants.h"
#include "tensor_program/script/script_graph.h"

namespace collage::tensor_program {
namespace {

using nlohmann::json;

/// Numbers, strings, lists and objects, as JSON; lists of numbers are constants' values.
Result<json> read_json(TextReader& reader) {
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const Token start = TRY(take(reader));
  if (start.is("[") || start.is("(")) {
    return json(TRY(reader.list(start.is("[") ? "]" : ")", [&] { return read_json(reader); })));
  }
  if (start.is("{")) {
    json object = json::object();
    while (!reader.is("}")) {
      const std::string name = TRY(read_string(reader, "a name as a string"));
      TRY(reader.expect(":"));
      object[name] = TRY(read_json(reader));
      if (!TRY(reader.accept(","))) break;
    }
    TRY(reader.expect("}"));
    return object;
  }
  if (start.kind == Token::Kind::kString) return json(start.text);
  if (start.is("True") || start.is("False")) return json(start.is("True") ? 1U : 0U);
  const std::string text = start.is("-") ? "-" + TRY(take(reader)).text : start.text;
  json number = parse_json(text);
  if (!number.is_number()) return at(start, bad_model("'{}' is no number", text));
  return number;
}

/// The shape of nested lists, whose numbers get into one.
Status flatten(const json& value, size_t depth, Shape& shape, json& values) {
  if (!value.is_array()) {
    if (depth != shape.size()) return bad_model("lists of different lengths");
    values.push_back(value);
    return {};
  }
  const auto length = static_cast<int64_t>(value.size());
  if (values.empty() && depth == shape.size()) shape.push_back(length);
  if (depth >= shape.size() || shape[depth] != length)
    return bad_model("lists of different lengths");
  for (const json& item : value) TRY(flatten(item, depth + 1, shape, values));
  return {};
}

}  // namespace

Result<Expr> read_script_constant(ScriptModule& module, const Token& start) {
  TextReader& reader = module.reader;
  if (reader.is("shape")) {
    const TensorType type = TRY(read_array_type_to(")", reader, module.scope));
    const size_t index = module.constants++;
    if (!module.options.constant)
      return at(start, bad_model("constant {} is given by its type only, {}, and nothing supplies "
                                 "it",
                                 index, type.to_string()));
    return make_constant(TRY(at(start, module.options.constant(type, index))));
  }
  json value = TRY(read_json(reader));
  std::string dtype;
  if (TRY(reader.accept(","))) {
    if (TRY(reader.accept("dtype"))) TRY(reader.expect("="));
    dtype = dtype_name(TRY(read_dtype(reader)));
  }
  TRY(reader.expect(")"));
  if (!value.is_object()) {
    Shape shape;
    json values = json::array();
    TRY(at(start, flatten(value, 0, shape, values)));
    const bool whole = std::all_of(values.begin(), values.end(),
                                   [](const json& one) { return one.is_number_integer(); });
    if (dtype.empty()) dtype = whole ? "int32" : "float32";
    value = {{"dtype", dtype}, {"shape", shape}, {"values", values}};
  }
  return make_constant(TRY(at(start, parse_constant_entry(value))));
}

}  // namespace collage::tensor_program
