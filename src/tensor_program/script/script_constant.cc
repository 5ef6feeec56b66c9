#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "ir/text_constants.h"
#include "tensor_program/script/script_graph.h"

namespace collage::tensor_program {

using nlohmann::json;

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
