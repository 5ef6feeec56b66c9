#include "ir/large_constants.h"

#include "ir/visitor.h"

namespace collage {

Function without_large_constants(const Function& function) {
  constexpr size_t kLarge = size_t{64} << 10;
  Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    if (rebuilt->kind() == ExprKind::kFunction)  // that is called
      return without_large_constants(std::static_pointer_cast<const FunctionNode>(rebuilt));
    const auto* constant = as<ConstantNode>(rebuilt);
    if (constant == nullptr || constant->value.bytes() < kLarge) return rebuilt;
    const Tensor& value = constant->value;
    return make_constant(Tensor::borrow(value.dtype(), value.shape(), nullptr), constant->origin());
  });
  Result<Function> changed = rewriter.rewrite(function);
  return changed.ok() ? std::move(changed).value() : function;
}

}  // namespace collage
