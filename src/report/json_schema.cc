#include "report/json_schema.h"

#include <fmt/format.h>

#include "base/regex.h"

namespace collage {

using nlohmann::json;

namespace {

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

bool matches(const std::string& text, const std::string& pattern) {
  const Result<Regex> expression = Regex::parse(pattern);
  return expression.ok() && expression->found_in(text);
}

class Checker {
 public:
  explicit Checker(const json& root) : root_(root) {}

  std::string check(const json& value, const json& schema, const std::string& path) const {
    if (auto ref = schema.find("$ref"); ref != schema.end()) {
      json::json_pointer target(ref->get<std::string>().substr(1));
      return check(value, root_.at(target), path);
    }
    if (auto options = schema.find("anyOf"); options != schema.end()) {
      std::string wrong;  // by the option that fits furthest
      for (const json& option : *options) {
        std::string problem = check(value, option, path);
        if (problem.empty()) return {};
        if (wrong.empty() || problem.find(':') > wrong.find(':')) wrong = std::move(problem);
      }
      return wrong;
    }
    if (auto type = schema.find("type"); type != schema.end() && !has_type(value, *type))
      return fmt::format("{}: is no {}", path, type->get<std::string>());
    if (auto constant = schema.find("const"); constant != schema.end() && value != *constant)
      return fmt::format("{}: is not {}", path, constant->dump());
    if (auto least = schema.find("minimum");
        least != schema.end() && value.is_number() && value.get<double>() < least->get<double>())
      return fmt::format("{}: is below {}", path, least->dump());
    if (auto pattern = schema.find("pattern");
        pattern != schema.end() && value.is_string() &&
        !matches(value.get_ref<const std::string&>(), pattern->get<std::string>()))
      return fmt::format("{}: does not match {}", path, pattern->get<std::string>());
    if (value.is_array()) return check_items(value, schema, path);
    if (value.is_object()) return check_members(value, schema, path);
    return {};
  }

 private:
  std::string check_items(const json& value, const json& schema, const std::string& path) const {
    auto items = schema.find("items");
    if (items == schema.end()) return {};
    for (size_t i = 0; i < value.size(); ++i)
      if (std::string wrong = check(value[i], *items, fmt::format("{}/{}", path, i));
          !wrong.empty())
        return wrong;
    return {};
  }

  std::string check_members(const json& value, const json& schema, const std::string& path) const {
    static const json kNone = json::object();
    const json& known = schema.contains("properties") ? schema["properties"] : kNone;
    if (auto required = schema.find("required"); required != schema.end())
      for (const json& key : *required)
        if (!value.contains(key.get<std::string>()))
          return fmt::format("{}/{}: is missing", path, key.get<std::string>());
    auto others = schema.find("additionalProperties");
    for (const auto& [key, item] : value.items()) {
      std::string place = path + "/" + key, wrong;
      if (known.contains(key)) {
        wrong = check(item, known[key], place);
      } else if (others != schema.end() && others->is_object()) {
        wrong = check(item, *others, place);
      } else if (others != schema.end() && *others == false) {
        wrong = place + ": is not known";
      }
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  const json& root_;
};

}  // namespace

std::string schema_violation(const json& value, const json& schema) {
  return Checker(schema).check(value, schema, "");
}

}  // namespace collage
