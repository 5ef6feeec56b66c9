// Attributes of the public interface and of expressions, which have the same kinds of values.
#pragma once

#include <collage/expression.h>

#include <type_traits>

#include "ir/attrs.h"

namespace collage {

// The kinds of values are the same but for the name of nothing.
template <typename To, typename From>
To converted(const From& value) {
  return std::visit(
      [](const auto& held) -> To {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, None> || std::is_same_v<Held, std::monostate>)
          return To();
        else
          return To(held);
      },
      value);
}

inline Attrs attrs_of(const Expression::Attributes& attributes) {
  Attrs attrs;
  for (const auto& [name, value] : attributes) attrs.set(name, converted<AttrValue>(value));
  return attrs;
}

inline Expression::Attributes attributes_of(const Attrs& attrs) {
  Expression::Attributes attributes;
  for (const auto& [name, value] : attrs.entries())
    attributes.emplace_back(name, converted<Expression::Value>(value));
  return attributes;
}

}  // namespace collage
