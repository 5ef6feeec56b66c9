#include "backend/offer.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

Result<bool> may_lose_nan(const Backend& backend, const Function& function) {
  const std::vector<std::string_view>& operators = backend.traits().loses_nan;
  if (operators.empty()) return false;
  const Function flat = TRY(inline_calls(function));
  const std::vector<Expr> nodes = post_order(flat->body);
  return std::any_of(nodes.begin(), nodes.end(), [&](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr &&
           std::find(operators.begin(), operators.end(), call->op->name) != operators.end();
  });
}

Result<std::vector<Variant>> offered_variants(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options) {
  std::vector<Variant> variants = TRY(backend.variants(function, target, options));
  std::erase_if(variants, [&](const Variant& variant) {
    return variant.rounding.limit() > options.rounding;
  });
  if (TRY(may_lose_nan(backend, function)))
    for (Variant& variant : variants) variant.loses_nan = true;
  return variants;
}

Result<std::vector<Variant>> variants_to_cost(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options) {
  std::vector<Variant> variants = TRY(offered_variants(backend, function, target, options));
  if (options.rounding == RoundingLimit::kAny)
    std::erase_if(variants, [](const Variant& variant) { return !variant.lowered(); });
  return variants;
}

}  // namespace collage
