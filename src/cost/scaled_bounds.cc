#include "cost/scaled_bounds.h"

#include <algorithm>
#include <limits>

#include "backend/backend.h"
#include "cost/analytic.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

constexpr double kMargin = 0.9;
constexpr size_t kFew = 3;  // functions without an anchor that tell of others

std::string anchors_of(const Function& function) {
  std::string anchors;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || call->op->kind <= FusionKind::kInjective)
      continue;
    anchors += call->op->name;
    for (const auto& [name, value] : call->attrs.entries())
      anchors += " " + name + "=" + attr_to_string(value);
    for (const Expr& argument : call->args) anchors += " " + argument->type().to_string();
    anchors += "\n";
  }
  return anchors;
}

}  // namespace

ScaledBounds::Bound ScaledBounds::bound_of(const Function& function, const Target& target) const {
  auto [it, inserted] = bounds_.try_emplace({function, target.kind});
  if (inserted) {
    const Backend* backend = find_backend(target.kind);
    const double speedup = backend != nullptr ? backend->vector_speedup() : 1;
    it->second = {least_kernel_seconds(function, threads_, speedup), anchors_of(function)};
  }
  return it->second;
}

double ScaledBounds::least(const Function& function, const Target& target) const {
  const Bound bound = bound_of(function, target);
  const auto known = ratios_.find({target.to_string(), bound.anchors});
  if (known == ratios_.end() || (bound.anchors.empty() && known->second.size() < kFew))
    return bound.seconds;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [text, ratio] : known->second) least = std::min(least, ratio);
  return bound.seconds * std::max(1.0, kMargin * least);
}

void ScaledBounds::learn(const Function& function, const std::string& text,
                         const TargetCosts& costs) {
  const Result<Target> target = Target::parse(costs.target);
  if (!target) return;
  double fastest = std::numeric_limits<double>::infinity();
  for (const MeasuredVariant& row : costs.variants)
    if (const Measured* m = measured(row.cost); m != nullptr && !row.variant.lowered)
      fastest = std::min(fastest, m->seconds());
  const Bound bound = bound_of(function, *target);
  if (fastest == std::numeric_limits<double>::infinity() || bound.seconds <= 0) return;
  ratios_[{costs.target, bound.anchors}][text] = fastest / bound.seconds;
}

}  // namespace collage
