#include "runtime/saved_fields.h"

#include "base/json.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kMostDims = 32;
constexpr int64_t kMostBytes = int64_t{1} << 46;

Result<Shape> shape_from(const JsonFields& fields) {
  Shape shape = TRY(integers_from(fields, "shape", 0, kMostBytes, kMostDims));
  if (TRY(checked_num_elements(shape)) > kMostBytes / 8)
    return bad_model("a tensor of shape {}", shape_to_string(shape));
  return shape;
}

Result<DType> dtype_from(const JsonFields& fields) {
  return parse_dtype(TRY(fields.text("dtype")));
}

}  // namespace

json to_json(const TensorType& type) {
  return {{"dtype", dtype_name(type.dtype)}, {"shape", type.shape}};
}

json to_json(const Encoding& encoding) {
  json result = {{"dtype", dtype_name(encoding.dtype)}, {"layout", encoding.layout.to_string()}};
  if (encoding.device != VirtualDevice{})
    result["device"] = {{"kind", encoding.device.device},
                        {"id", encoding.device.id},
                        {"scope", encoding.device.memory_scope}};
  return result;
}

Result<TensorType> tensor_type_from(const json& value) {
  const JsonFields fields(value);
  TensorType type;
  type.dtype = TRY(dtype_from(fields));
  type.shape = TRY(shape_from(fields));
  return type;
}

Result<Encoding> encoding_from(const json& value) {
  const JsonFields fields(value);
  Encoding encoding;
  encoding.dtype = TRY(dtype_from(fields));
  const std::string layout = TRY(fields.text("layout"));
  if (layout != Layout().to_string()) encoding.layout = TRY(Layout::parse(layout));
  if (fields.has("device")) {
    const json& device = *TRY(fields.object("device"));
    const JsonFields named(device);
    encoding.device.device = TRY(named.text("kind"));
    encoding.device.id = static_cast<int>(TRY(named.integer("id", 0, 1 << 16)));
    encoding.device.memory_scope = TRY(named.text("scope"));
  }
  return encoding;
}

Result<std::vector<int64_t>> integers_from(const JsonFields& fields, const char* name, int64_t low,
                                           int64_t high, size_t most) {
  const json& list = *TRY(fields.array(name));
  if (list.size() > most) return bad_model("'{}' has {} numbers", name, list.size());
  std::vector<int64_t> numbers;
  for (const json& entry : list) {
    const json wrapped = {{name, entry}};
    numbers.push_back(TRY(JsonFields(wrapped).integer(name, low, high)));
  }
  return numbers;
}

Result<std::vector<TensorType>> tensor_types_from(const JsonFields& fields, const char* name) {
  std::vector<TensorType> types;
  for (const json& entry : *TRY(fields.array(name))) types.push_back(TRY(tensor_type_from(entry)));
  return types;
}

Result<json> description_object(const std::string& text) {
  json value = parse_json(text);
  if (!value.is_object()) return bad_model("a kernel's description is no JSON object");
  return value;
}

}  // namespace collage
