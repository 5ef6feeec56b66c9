#include "ir/text_constants.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/hexadecimal.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

using nlohmann::json;

std::string_view literal_suffix(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f";
    case DType::kFloat64:
      return "f64";
    case DType::kInt32:
      return "";
    case DType::kInt8:
      return "i8";
    case DType::kInt16:
      return "i16";
    case DType::kInt64:
      return "i64";
    case DType::kUInt8:
      return "u8";
    case DType::kUInt16:
      return "u16";
    case DType::kUInt32:
      return "u32";
    case DType::kUInt64:
      return "u64";
    default:
      return "?";
  }
}

// Decimal form that reads back as the same value; with a point or an exponent.
template <typename T>
std::string real_text(T value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
bool is_plain_nan(T value) {
  T plain = std::numeric_limits<T>::quiet_NaN();
  return std::memcmp(&value, &plain, sizeof plain) == 0;
}

template <typename T>
std::optional<std::string> real_literal(T value, std::string_view suffix) {
  if (std::isnan(value) && !is_plain_nan(value)) return std::nullopt;
  if (std::isnan(value)) return fmt::format("nan{}", suffix);
  return fmt::format("{}{}", value, suffix);
}

Result<Tensor> parse_number(std::string_view digits, DType dtype) {
  return dispatch_number(dtype, [digits, dtype]<typename T>(Tag<T>) -> Result<Tensor> {
    T value{};
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size())
      return bad_model("'{}' is no value of {}", digits, dtype_name(dtype));
    return Tensor::scalar<T>(value);
  });
}

// A list of JSON numbers, or empty when some element has no exact decimal form.
template <typename T>
std::string real_values(const Tensor& value) {
  std::string text = "[";
  for (T v : value.values<T>()) {
    if (std::isnan(v)) return "";
    if (text.size() > 1) text += ", ";
    std::string number = real_text(v);
    // The reader goes through double: make sure that rounds to the same value.
    if (!std::isinf(v) && static_cast<T>(std::strtod(number.c_str(), nullptr)) != v)
      number = real_text(static_cast<double>(v));
    text += std::isinf(v) ? "\"" + number + "\"" : number;
  }
  return text + "]";
}

}  // namespace

std::string constant_values(const Tensor& value) {
  if (value.dtype() == DType::kFloat32) return real_values<float>(value);
  if (value.dtype() == DType::kFloat64) return real_values<double>(value);
  if (is_float(value.dtype())) return "";
  std::string text = "[";
  for (int64_t i = 0; i < value.size(); ++i) {
    if (i > 0) text += ", ";
    if (value.dtype() == DType::kUInt64) {
      text += std::to_string(value.data<uint64_t>()[i]);
    } else {
      text += std::to_string(value.element_as_int64(i));
    }
  }
  return text + "]";
}

namespace {

template <typename T>
Status fill(const json& values, Tensor& tensor) {
  for (size_t i = 0; i < values.size(); ++i) {
    const json& v = values[i];
    T& out = tensor.data<T>()[i];
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T kInfinity = std::numeric_limits<T>::infinity();
      if (v.is_number()) {
        out = static_cast<T>(v.get<double>());
      } else if (v == "inf" || v == "-inf") {
        out = v == "inf" ? kInfinity : -kInfinity;
      } else {
        return bad_model("value {} is no number", i);
      }
    } else {
      bool fits = v.is_number_unsigned() ? v.get<uint64_t>() <= std::numeric_limits<T>::max()
                  : v.is_number_integer()
                      ? std::is_signed_v<T> &&
                            v.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min())
                      : false;
      if (!fits) return bad_model("value {} is no {}", i, dtype_name(tensor.dtype()));
      out = v.get<T>();
    }
  }
  return {};
}

Status fill(const json& values, DType dtype, Tensor& tensor) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    return bad_model("values of {} are given as \"hex\"", dtype_name(dtype));
  if (dtype == DType::kBool)
    for (const json& v : values)
      if (v != 0 && v != 1) return bad_model("a value of bool is 0 or 1");
  return dispatch_any(dtype, [&]<typename T>(Tag<T>) { return fill<T>(values, tensor); });
}

constexpr int64_t kMostUniform = 1 << 20;

std::string entry_with(const Tensor& value, const std::string& values) {
  std::string shape;
  for (int64_t extent : value.shape())
    shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  return fmt::format("{{\"dtype\": \"{}\", \"shape\": [{}], {}}}", dtype_name(value.dtype()), shape,
                     values);
}

}  // namespace

std::optional<std::string> scalar_literal(const Tensor& value) {
  if (value.rank() != 0) return std::nullopt;
  std::string_view suffix = literal_suffix(value.dtype());
  switch (value.dtype()) {
    case DType::kBool:
      return value.element_as_int64(0) ? "True" : "False";
    case DType::kFloat32:
      return real_literal(*value.data<float>(), suffix);
    case DType::kFloat64:
      return real_literal(*value.data<double>(), suffix);
    case DType::kFloat16:
    case DType::kBFloat16:
      return std::nullopt;
    case DType::kUInt64:
      return fmt::format("{}{}", *value.data<uint64_t>(), suffix);
    default:
      return fmt::format("{}{}", value.element_as_int64(0), suffix);
  }
}

Result<Tensor> parse_scalar_literal(std::string_view text) {
  static constexpr DType kSuffixed[] = {DType::kFloat64, DType::kInt8,   DType::kInt16,
                                        DType::kInt64,   DType::kUInt8,  DType::kUInt16,
                                        DType::kUInt32,  DType::kUInt64, DType::kFloat32};
  for (DType dtype : kSuffixed) {
    std::string_view suffix = literal_suffix(dtype);
    if (text.size() <= suffix.size() || !text.ends_with(suffix)) continue;
    std::string_view digits = text.substr(0, text.size() - suffix.size());
    // "inf" ends like a literal of float32 and is none.
    if (digits == "in" || digits == "-in") continue;
    return parse_number(digits, dtype);
  }
  bool real = text.find_first_of(".en") != std::string_view::npos;
  return parse_number(text, real ? DType::kFloat32 : DType::kInt32);
}

std::string constant_entry(const Tensor& value) {
  std::string values = constant_values(value);
  return entry_with(value, values.empty()
                               ? "\"hex\": \"" + hexadecimal(value.raw(), value.bytes()) + "\""
                               : "\"values\": " + values);
}

std::optional<std::string> uniform_entry(const Tensor& value) {
  if (!is_integer(value.dtype()) || value.dtype() == DType::kUInt64 || value.size() == 0 ||
      value.size() > kMostUniform)
    return std::nullopt;
  const size_t unit = dtype_size(value.dtype());
  const auto* bytes = value.data<char>();
  for (size_t i = unit; i < value.bytes(); i += unit)
    if (std::memcmp(bytes, bytes + i, unit) != 0) return std::nullopt;
  return entry_with(value, fmt::format("\"value\": {}", value.element_as_int64(0)));
}

Result<TensorType> parse_constant_entry_type(const json& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array())
    return bad_model("a constant needs \"dtype\" and \"shape\"");
  TensorType type;
  type.dtype = TRY(parse_dtype(entry["dtype"].get<std::string>()));
  for (const json& extent : entry["shape"]) {
    if (!extent.is_number_integer()) return bad_model("\"shape\" is no list of integers");
    type.shape.push_back(extent.get<int64_t>());
  }
  TRY(checked_num_elements(type.shape));
  return type;
}

Result<Tensor> parse_constant_entry(const json& entry) {
  TensorType type = TRY(parse_constant_entry_type(entry));
  auto count = static_cast<size_t>(num_elements(type.shape));
  if (entry.contains("values") && entry["values"].is_array()) {
    const json& values = entry["values"];
    if (values.size() != count)
      return bad_model("{} values for shape {}", values.size(), shape_to_string(type.shape));
    Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
    TRY(fill(values, type.dtype, tensor));
    return tensor;
  }
  if (entry.contains("value")) {
    if (num_elements(type.shape) > kMostUniform || !is_integer(type.dtype))
      return bad_model("one \"value\" for {} of {}", shape_to_string(type.shape),
                       dtype_name(type.dtype));
    Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
    TRY(fill(json(count, entry["value"]), type.dtype, tensor));
    return tensor;
  }
  if (!entry.contains("hex") || !entry["hex"].is_string())
    return bad_model("a constant needs \"values\" or \"hex\"");
  const auto& hex = entry["hex"].get_ref<const std::string&>();
  if (hex.size() % (2 * dtype_size(type.dtype)) != 0 ||
      hex.size() / (2 * dtype_size(type.dtype)) != count)
    return bad_model("\"hex\" has {} digits, which do not fit shape {}", hex.size(),
                     shape_to_string(type.shape));
  const std::optional<std::string> bytes = from_hexadecimal(hex);
  if (!bytes) return bad_model("\"hex\" holds something else");
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  if (!bytes->empty()) std::memcpy(tensor.raw(), bytes->data(), bytes->size());
  return tensor;
}

}  // namespace collage
