#include "runtime/saved_fields.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/json.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kMostDims = 32;

Result<DType> dtype_from(const JsonFields& fields) {
  return parse_dtype(TRY(fields.text("dtype")));
}

}  // namespace

int64_t most_bytes() {
  static const int64_t most = [] {
    const int64_t pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
    return std::min(std::max<int64_t>(pages, 1 << 16) * std::max<int64_t>(bytes, 1 << 12),
                    int64_t{1} << 46);
  }();
  return most;
}

Result<size_t> bytes_from(const Shape& shape, size_t element) {
  Shape not_empty = shape;  // so that no dimension is too large either
  for (int64_t& extent : not_empty) extent = extent == 0 ? 1 : extent;
  if (TRY(checked_num_elements(not_empty)) > most_bytes() / static_cast<int64_t>(element))
    return bad_model("a tensor of shape {} is larger than this machine's memory",
                     shape_to_string(shape));
  return static_cast<size_t>(num_elements(shape)) * element;
}

Result<size_t> encoded_bytes(const Shape& shape, const Encoding& encoding) {
  const Layout& layout = encoding.layout;
  if (!layout.fits(static_cast<int64_t>(shape.size())))
    return bad_model("a tensor of shape {} in layout {}", shape_to_string(shape),
                     layout.to_string());
  return bytes_from(layout.physical_shape(shape), dtype_size(encoding.dtype));
}

json to_json(const TensorType& type) {
  return {{"dtype", dtype_name(type.dtype)}, {"shape", type.shape}};
}

json to_json(const VirtualDevice& device) {
  return {{"kind", device.device}, {"id", device.id}, {"scope", device.memory_scope}};
}

json to_json(const Encoding& encoding) {
  json result = {{"dtype", dtype_name(encoding.dtype)}, {"layout", encoding.layout.to_string()}};
  if (!is_host_memory(encoding.device)) result["device"] = to_json(encoding.device);
  return result;
}

Result<TensorType> tensor_type_from(const json& value) {
  const JsonFields fields(value);
  TensorType type;
  type.dtype = TRY(dtype_from(fields));
  type.shape = TRY(integers_from(fields, "shape", 0, most_bytes(), kMostDims));
  TRY(bytes_from(type.shape, dtype_size(type.dtype)));
  return type;
}

Result<VirtualDevice> device_from(const json& value) {
  const JsonFields fields(value);
  VirtualDevice device;
  device.device = TRY(fields.text("kind"));
  device.id = static_cast<int>(TRY(fields.integer("id", 0, 1 << 16)));
  device.memory_scope = TRY(fields.text("scope"));
  return device;
}

Result<Encoding> encoding_from(const json& value) {
  const JsonFields fields(value);
  Encoding encoding;
  encoding.dtype = TRY(dtype_from(fields));
  const std::string layout = TRY(fields.text("layout"));
  if (layout != Layout().to_string()) encoding.layout = TRY(Layout::parse(layout));
  if (fields.has("device")) encoding.device = TRY(device_from(*TRY(fields.object("device"))));
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

json float_bits(std::span<const float> numbers) {
  json bits = json::array();
  for (const float number : numbers) bits.push_back(std::bit_cast<uint32_t>(number));
  return bits;
}

Result<std::vector<float>> floats_from(const JsonFields& fields, const char* name, size_t most) {
  const json& list = *TRY(fields.array(name));
  if (list.size() > most) return bad_model("'{}' has {} numbers", name, list.size());
  std::vector<float> numbers;
  numbers.reserve(list.size());
  for (const json& entry : list) {
    const uint64_t bits = entry.is_number_unsigned() ? entry.get<uint64_t>() : UINT64_MAX;
    if (bits > UINT32_MAX) return bad_model("'{}' holds what are no bits of a number", name);
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
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
