#include "backend/offer.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

Result<bool> calls_any_of(const Function& function,
                          const std::vector<std::string_view>& operators) {
  if (operators.empty()) return false;
  const Function flat = TRY(inline_calls(function));
  const std::vector<Expr> nodes = post_order(flat->body);
  return std::any_of(nodes.begin(), nodes.end(), [&](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr &&
           std::find(operators.begin(), operators.end(), call->op->name) != operators.end();
  });
}

}  // namespace

Result<std::vector<Variant>> offered_variants(const Backend& backend, Offer offer,
                                              const Function& function, const Target& target,
                                              const CompileOptions& options) {
  std::vector<Variant> variants =
      TRY(offer == Offer::kLowered ? backend.lowered_variants(function, target, options)
                                   : backend.variants(function, target, options));
  if (TRY(calls_any_of(function, backend.loses_nan())))
    for (Variant& variant : variants) variant.loses_nan = true;
  return variants;
}

}  // namespace collage
