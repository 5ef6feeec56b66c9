// Counts copies from place to place.
#pragma once

#include "ir/module.h"
#include "ir/visitor.h"

namespace collage {

inline size_t count_device_copies(const Expr& body) {
  size_t count = 0;
  for (const Expr& expr : post_order(body)) {
    count += as_op(expr, "device_copy") != nullptr;
    if (const auto* function = as<FunctionNode>(expr)) count += count_device_copies(function->body);
  }
  return count;
}

inline size_t count_device_copies(const Module& module) {
  size_t count = 0;
  for (const auto& [name, function] : module.functions)
    count += count_device_copies(function->body);
  return count;
}

}  // namespace collage
