// Attributes of operator calls and functions: a small ordered map from names to values. A call's
// attributes are normalised when it is made: every attribute of the operator is present, defaults
// filled in, so readers need no defaults of their own.
#pragma once

#include <collage/tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace collage {

using Ints = std::vector<int64_t>;
using IntLists = std::vector<Ints>;
// An absent optional value ("None" in text), then the kinds of values.
struct None {
  bool operator==(const None&) const = default;
};
using AttrValue = std::variant<None, bool, int64_t, double, std::string, DType, Ints, IntLists,
                               std::vector<double>>;

std::string attr_to_string(
    const AttrValue& value);  // as Relay text prints it: True, 1, 0.5f, "same", [1, 1]

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries) {
    for (const auto& [name, value] : entries) set(name, value);
  }

  Attrs& set(std::string_view name, AttrValue value);
  const AttrValue* find(std::string_view name) const;  // null when absent
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Readers: the attribute must exist with that kind (normalised calls guarantee it), else a check
  // fails.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& string(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  const IntLists& int_lists(std::string_view name) const;
  bool is_none(std::string_view name) const;  // absent or None

  const std::vector<std::pair<std::string, AttrValue>>& entries() const {
    return entries_;
  }  // sorted by name
  bool empty() const { return entries_.empty(); }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<std::pair<std::string, AttrValue>> entries_;
};

}  // namespace collage
