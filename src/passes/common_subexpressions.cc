#include "passes/common_subexpressions.h"

#include <unordered_map>

#include "ir/structural.h"
#include "ir/visitor.h"

namespace collage {

Result<Function> eliminate_common_subexpressions(const Function& function) {
  ValueNumbering numbers;
  std::unordered_map<size_t, Expr> first;
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    // Parameters of equal type are different values; so are they to the numbering, which sees
    // them as free here.
    return first.emplace(numbers.number(rebuilt), rebuilt).first->second;
  });
  return rewriter.rewrite(function);
}

}  // namespace collage
