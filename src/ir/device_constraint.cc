#include "ir/device_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "ir/target.h"

namespace collage {

namespace {

constexpr std::string_view kOrdinaryMemory = "global";

bool is_name(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_part);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <typename T>
bool merge(std::optional<T>& into, const std::optional<T>& other) {
  if (!into) into = other;
  return !other || *into == *other;
}

}  // namespace

Result<DeviceConstraint> DeviceConstraint::parse(std::string_view text) {
  DeviceConstraint result;
  std::string_view rest = trimmed(text);
  const auto wrong = [&] {
    return usage_error("'{}' is no device: expected KIND[:NUMBER][/SCOPE][@TARGET], or ?",
                       printable(std::string(text)));
  };
  if (rest == "?") return result;
  if (rest.empty()) return wrong();
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    result.target = TRY(Target::parse(rest.substr(at + 1))).to_string();
    rest = rest.substr(0, at);
  }
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view scope = rest.substr(slash + 1);
    if (!is_name(scope)) return wrong();
    result.memory_scope = scope == kOrdinaryMemory ? "" : std::string(scope);
    rest = rest.substr(0, slash);
  }
  const size_t colon = rest.find(':');
  const std::string_view kind = rest.substr(0, colon);
  if (rest.empty()) return result;
  if (!is_name(kind)) return wrong();
  result.device = kind;
  if (colon == std::string_view::npos) return result;
  const char* const end = rest.data() + rest.size();
  int id = 0;
  const auto [stop, error] = std::from_chars(rest.data() + colon + 1, end, id);
  if (error != std::errc() || stop != end || id < 0) return wrong();
  result.id = id;
  return result;
}

Result<DeviceConstraint> refined(const DeviceConstraint& constraint) {
  if (!constraint.target) return constraint;
  const Target target = TRY(Target::parse(*constraint.target));
  if (target.device == VirtualDevice{}) return constraint;  // it states none
  DeviceConstraint own = DeviceConstraint::exactly(target.device);
  if (own.memory_scope->empty()) own.memory_scope.reset();
  const std::optional<DeviceConstraint> both = join(constraint, own);
  if (!both) return bad_model("'{}': the target is of another device", constraint.to_string());
  return *both;
}

std::string DeviceConstraint::to_string() const {
  if (is_open()) return "?";
  std::string text = device.value_or("");
  if (id) text += fmt::format(":{}", *id);
  if (memory_scope)
    text += fmt::format("/{}", memory_scope->empty() ? kOrdinaryMemory : *memory_scope);
  if (target) text += "@" + *target;
  return text;
}

DeviceConstraint DeviceConstraint::exactly(const VirtualDevice& device) {
  DeviceConstraint result;
  result.device = device.device;
  result.id = device.id;
  result.memory_scope = device.memory_scope;
  return result;
}

std::optional<DeviceConstraint> join(const DeviceConstraint& a, const DeviceConstraint& b) {
  DeviceConstraint both = a;
  if (!merge(both.device, b.device) || !merge(both.id, b.id) ||
      !merge(both.memory_scope, b.memory_scope))
    return std::nullopt;
  if (merge(both.target, b.target)) return both;
  const Result<TargetName> one = TargetName::parse(*a.target), other = TargetName::parse(*b.target);
  if (!one || !other) return std::nullopt;
  const std::optional<TargetName> target = TargetName::join(*one, *other);
  if (!target) return std::nullopt;
  both.target = target->text();
  return both;
}

std::vector<std::string_view> list_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    entries.push_back(trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return entries;
}

Result<std::vector<DeviceConstraint>> parse_device_list(std::string_view text) {
  std::vector<DeviceConstraint> list;
  for (const std::string_view entry : list_entries(text))
    list.push_back(TRY(DeviceConstraint::parse(entry)));
  return list;
}

std::string device_list_text(const std::vector<DeviceConstraint>& list) {
  std::string text;
  for (const DeviceConstraint& one : list) text += (text.empty() ? "" : ", ") + one.to_string();
  return text;
}

}  // namespace collage
