#include "ir/attrs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace collage {

namespace {

template <typename T>
std::string list_to_string(const std::vector<T>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + attr_to_string(AttrValue(values[i]));
  return text + "]";
}

struct ToString {
  std::string operator()(None) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  // 17 digits read back exactly; a suffix tells a real from an integer.
  std::string operator()(double value) const { return fmt::format("{}f", value); }
  std::string operator()(const std::string& value) const {
    std::string text = "\"";
    for (char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      if (c == '\n') {
        text += "\\n";
      } else {
        text += c;
      }
    }
    return text + "\"";
  }
  std::string operator()(DType value) const { return fmt::format("\"{}\"", dtype_name(value)); }
  std::string operator()(const Ints& values) const { return list_to_string(values); }
  std::string operator()(const IntLists& values) const { return list_to_string(values); }
  std::string operator()(const std::vector<double>& values) const { return list_to_string(values); }
};

template <typename T>
const T& require(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = attrs.find(name);
  COLLAGE_CHECK(value != nullptr, "attribute '{}' is missing", name);
  const T* typed = std::get_if<T>(value);
  COLLAGE_CHECK(typed != nullptr, "attribute '{}' has another kind: {}", name,
                attr_to_string(*value));
  return *typed;
}

}  // namespace

std::string attr_to_string(const AttrValue& value) { return std::visit(ToString{}, value); }

Attrs& Attrs::set(std::string_view name, AttrValue value) {
  auto it =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.insert(it, {std::string(name), std::move(value)});
  }
  return *this;
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

bool Attrs::flag(std::string_view name) const { return require<bool>(*this, name); }
int64_t Attrs::integer(std::string_view name) const { return require<int64_t>(*this, name); }
double Attrs::real(std::string_view name) const { return require<double>(*this, name); }
const std::string& Attrs::string(std::string_view name) const {
  return require<std::string>(*this, name);
}
DType Attrs::dtype(std::string_view name) const { return require<DType>(*this, name); }
const Ints& Attrs::ints(std::string_view name) const { return require<Ints>(*this, name); }
const IntLists& Attrs::int_lists(std::string_view name) const {
  return require<IntLists>(*this, name);
}
bool Attrs::is_none(std::string_view name) const {
  const AttrValue* value = find(name);
  return value == nullptr || std::holds_alternative<None>(*value);
}

}  // namespace collage
