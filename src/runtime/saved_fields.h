// Shapes, types and encodings as JSON, for what is saved of plans and kernels. Reading trusts
// nothing: sizes are checked before anybody computes with them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_fields.h"
#include "base/result.h"
#include "runtime/encoding.h"
#include "runtime/tensor_type.h"

namespace collage {

nlohmann::json to_json(const TensorType& type);    // {"dtype": "float32", "shape": [1, 8]}
nlohmann::json to_json(const Encoding& encoding);  // {"dtype": …, "layout": "aBcd16b", …}
Result<TensorType> tensor_type_from(const nlohmann::json& json);
Result<Encoding> encoding_from(const nlohmann::json& json);

// The array of that name: integers within the range, at most `most` of them.
Result<std::vector<int64_t>> integers_from(const JsonFields& fields, const char* name, int64_t low,
                                           int64_t high, size_t most);
Result<std::vector<TensorType>> tensor_types_from(const JsonFields& fields, const char* name);

// A description's object; kBadModel where the text is none.
Result<nlohmann::json> description_object(const std::string& text);

}  // namespace collage
