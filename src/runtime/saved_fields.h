// Shapes, types and encodings as JSON, for what is saved of plans and kernels. Reading trusts
// nothing: sizes are checked before anybody computes with them.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/json_fields.h"
#include "base/result.h"
#include "runtime/encoding.h"
#include "runtime/tensor_type.h"

namespace collage {

// What this machine's memory could hold: nothing larger is taken for a size, and sums of a few such
// sizes do not overflow.
int64_t most_bytes();

// What JsonFields and parsers of names blame on whoever calls them is the file's fault here.
template <typename T>
Result<T> or_bad_model(Result<T> read) {
  const ErrorCode code = read.ok() ? ErrorCode::kOk : read.status().code();
  if (code != ErrorCode::kInternal && code != ErrorCode::kUsage) return read;
  return bad_model("{}", read.status().to_string());
}

nlohmann::json to_json(const TensorType& type);       // {"dtype": "float32", "shape": [1, 8]}
nlohmann::json to_json(const VirtualDevice& device);  // {"kind": …, "id": …, "scope": …}
nlohmann::json to_json(const Encoding& encoding);     // {"dtype": …, "layout": "aBcd16b", …}
// Of no more than most_bytes().
Result<TensorType> tensor_type_from(const nlohmann::json& json);
Result<VirtualDevice> device_from(const nlohmann::json& json);
Result<Encoding> encoding_from(const nlohmann::json& json);

// Of a dense tensor whose elements have so many bytes, at least one; kBadModel where it is larger
// than most_bytes(), or would be with a 1 in place of each dimension of 0.
Result<size_t> bytes_from(const Shape& shape, size_t element);
// Of a tensor of that shape in that encoding, padding included; kBadModel also where the layout is
// one of another rank.
Result<size_t> encoded_bytes(const Shape& shape, const Encoding& encoding);

// The array of that name: integers within the range, at most `most` of them.
Result<std::vector<int64_t>> integers_from(const JsonFields& fields, const char* name, int64_t low,
                                           int64_t high, size_t most);
// Floats as their bits, since JSON has no infinities; at most `most` of them.
nlohmann::json float_bits(std::span<const float> numbers);
Result<std::vector<float>> floats_from(const JsonFields& fields, const char* name, size_t most);
Result<std::vector<TensorType>> tensor_types_from(const JsonFields& fields, const char* name);

// A description's object; kBadModel where the text is none.
Result<nlohmann::json> description_object(const std::string& text);

}  // namespace collage
