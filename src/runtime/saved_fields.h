// Shapes, types and encodings as JSON, for saved plans and kernels. The input is untrusted: sizes
// are checked before they are used.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/json_fields.h"
#include "base/result.h"
#include "runtime/encoding.h"
#include "runtime/tensor_type.h"

namespace collage {

// The most bytes that this machine's memory could hold: no larger number is accepted as a size, and
// sums of a few such sizes do not overflow.
int64_t most_bytes();

// Turns a usage error of JsonFields and of parsers of names into an error of the file.
template <typename T>
Result<T> or_bad_model(Result<T> read) {
  const ErrorCode code = read.ok() ? ErrorCode::kOk : read.status().code();
  if (code != ErrorCode::kInternal && code != ErrorCode::kUsage) return read;
  return bad_model("{}", read.status().to_string());
}

nlohmann::json to_json(const TensorType& type);       // {"dtype": "float32", "shape": [1, 8]}
nlohmann::json to_json(const VirtualDevice& device);  // {"kind": …, "id": …, "scope": …}
nlohmann::json to_json(const Encoding& encoding);     // {"dtype": …, "layout": "aBcd16b", …}
// A type of at most most_bytes().
Result<TensorType> tensor_type_from(const nlohmann::json& json);
Result<VirtualDevice> device_from(const nlohmann::json& json);
Result<Encoding> encoding_from(const nlohmann::json& json);

// Bytes of a dense tensor with elements of `element` bytes, at least one. kBadModel: it is larger
// than most_bytes(), or would be with a 1 in place of each dimension of 0.
Result<size_t> bytes_from(const Shape& shape, size_t element);
// Bytes of a tensor of that shape in that encoding, padding included; kBadModel also if the layout
// has another rank.
Result<size_t> encoded_bytes(const Shape& shape, const Encoding& encoding);

// Reads the array of that name: integers within the range, at most `most` of them.
Result<std::vector<int64_t>> integers_from(const JsonFields& fields, const char* name, int64_t low,
                                           int64_t high, size_t most);
// Floats as their bits, since JSON has no infinities; at most `most` of them.
nlohmann::json float_bits(std::span<const float> numbers);
Result<std::vector<float>> floats_from(const JsonFields& fields, const char* name, size_t most);
Result<std::vector<TensorType>> tensor_types_from(const JsonFields& fields, const char* name);

// Parses a description's object; kBadModel: the text is no object.
Result<nlohmann::json> description_object(const std::string& text);

}  // namespace collage
