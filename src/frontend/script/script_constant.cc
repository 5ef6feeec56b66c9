#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "frontend/script/script_graph.h"
#include "ir/text_constants.h"

namespace collage::tensor_program {
namespace {

using nlohmann::json;

/// Reads a number, or lists of them inside one another, into one list; the lists' lengths are the
/// shape, empty at depth 0.
Status read_numbers(TextReader& reader, size_t depth, Shape& shape, json& numbers) {
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const Token start = TRY(take(reader));
  const auto unequal = [&] { return at(start, bad_model("lists of different lengths")); };
  if (!start.is("[") && !start.is("(")) {
    json number = start.kind == Token::Kind::kString ? json(start.text)
                  : start.is("True")                 ? json(1U)
                  : start.is("False")                ? json(0U)
                  : start.is("-")                    ? parse_json("-" + TRY(take(reader)).text)
                                                     : parse_json(start.text);
    if (!number.is_number() && !number.is_string())
      return at(start, bad_model("'{}' is no number", start.text));
    numbers.push_back(std::move(number));
    return depth == shape.size() ? Status() : unequal();
  }
  const bool is_first = depth == shape.size() && numbers.empty();
  if (is_first) shape.push_back(0);
  int64_t length = 0;
  TRY(reader.list(start.is("[") ? "]" : ")", [&]() -> Result<int64_t> {
    TRY(read_numbers(reader, depth + 1, shape, numbers));
    return ++length;
  }));
  if (is_first) shape[depth] = length;
  return depth < shape.size() && shape[depth] == length ? Status() : unequal();
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
  json entry;
  if (reader.is("{")) {
    entry = parse_json(fmt::format("{{{}}}", TRY(reader.block()).text));
  } else {
    Shape shape;
    json values = json::array();
    TRY(read_numbers(reader, 0, shape, values));
    const bool whole = std::all_of(values.begin(), values.end(),
                                   [](const json& one) { return one.is_number_integer(); });
    DType dtype = whole ? DType::kInt32 : DType::kFloat32;
    if (TRY(reader.accept(","))) {
      TRY(accept_keyword(reader, "dtype"));
      dtype = TRY(read_dtype(reader));
    }
    entry = {{"dtype", std::string(dtype_name(dtype))}, {"shape", shape}, {"values", values}};
  }
  TRY(reader.expect(")"));
  return make_constant(TRY(at(start, parse_constant_entry(entry))));
}

}  // namespace collage::tensor_program
