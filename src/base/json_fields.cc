#include "base/json_fields.h"

#include <cmath>
#include <limits>

namespace collage {

using nlohmann::json;

namespace {

Status missing_field(const char* name) { return internal_error("'{}' is missing", name); }

}  // namespace

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json* JsonFields::find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(name);
  return it == object_.end() ? nullptr : &*it;
}

bool JsonFields::has(const char* name) const { return find(name) != nullptr; }

Result<std::string> JsonFields::text(const char* name, std::optional<std::string> missing) const {
  const json* value = find(name);
  if (value == nullptr && missing) return std::move(*missing);
  if (value == nullptr) return missing_field(name);
  if (!value->is_string()) return internal_error("'{}' is no text", name);
  return value->get_ref<const std::string&>();
}

Result<double> JsonFields::number(const char* name, Range range,
                                  std::optional<double> missing) const {
  const json* value = find(name);
  if (value == nullptr && missing) return *missing;
  if (value == nullptr) return missing_field(name);
  if (!value->is_number()) return internal_error("'{}' is no number", name);
  const auto number = value->get<double>();
  if (!std::isfinite(number) || number < range.low || number > range.high)
    return internal_error("'{}' is {:g}, not from {:g} to {:g}", name, number, range.low,
                          range.high);
  return number;
}

Result<int64_t> JsonFields::integer(const char* name, int64_t low, int64_t high,
                                    std::optional<int64_t> missing) const {
  const json* value = find(name);
  if (value == nullptr && missing) return *missing;
  if (value == nullptr) return missing_field(name);
  if (!value->is_number_integer()) return internal_error("'{}' is no integer", name);
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool fits = !value->is_number_unsigned() || value->get<uint64_t>() <= kMost;
  const int64_t number = fits ? value->get<int64_t>() : 0;
  if (!fits || number < low || number > high)
    return internal_error("'{}' is not from {} to {}", name, low, high);
  return number;
}

Result<bool> JsonFields::flag(const char* name, std::optional<bool> missing) const {
  const json* value = find(name);
  if (value == nullptr && missing) return *missing;
  if (value == nullptr) return missing_field(name);
  if (!value->is_boolean()) return internal_error("'{}' is no truth value", name);
  return value->get<bool>();
}

Result<const json*> JsonFields::array(const char* name) const {
  const json* value = find(name);
  if (value == nullptr) return missing_field(name);
  if (!value->is_array()) return internal_error("'{}' is no list", name);
  return value;
}

Result<const json*> JsonFields::object(const char* name) const {
  const json* value = find(name);
  if (value == nullptr) return missing_field(name);
  if (!value->is_object()) return internal_error("'{}' is no object", name);
  return value;
}

}  // namespace collage
