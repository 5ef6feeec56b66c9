// Symbols that the extents of a text are terms over, such as n in Tensor[(n, 2 * n + 1), float32]
// and the scalar {2 * n}i64,
// and their values while it is read: a text over symbols is read once for each (frontend/script/
// symbolic_module.h). What terms are is for whoever gives these.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace collage {

struct TextSymbols {
  std::map<std::string, int64_t> values;
  // Returns the value of a term; `numbers` are further names.
  std::function<Result<int64_t>(std::string_view term,
                                const std::map<std::string, int64_t>& numbers)>
      value;
  // If given, headers alone are read, and each is told as soon as it is; an error ends the reading.
  std::function<Status(const std::string& function, const std::vector<Expr>& params,
                       const std::optional<Type>& result)>
      header;

  bool only_headers() const { return header != nullptr; }
};

}  // namespace collage
