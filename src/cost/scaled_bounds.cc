#include "cost/scaled_bounds.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "backend/backend.h"
#include "cost/analytic.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

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

const ScaledBounds::Bound& ScaledBounds::bound_of(const Function& function,
                                                  const Target& target) const {
  const Cores cores = target.cores();
  auto [it, inserted] = bounds_.try_emplace({function, target.kind + " " + cores.to_string()});
  if (inserted) {
    const Backend* backend = find_backend(target.kind);
    const double speedup = backend != nullptr ? backend->traits().vector_speedup : 1;
    it->second = {least_kernel_seconds(function, cores.empty() ? threads_ : cores.count(), speedup),
                  anchors_of(function)};
  }
  return it->second;
}

std::optional<double> ScaledBounds::ratio_of(const std::string& target,
                                             const std::string& anchors) const {
  const auto known = ratios_.find({target, anchors});
  if (known == ratios_.end() || (anchors.empty() && known->second.size() < kFew))
    return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [text, ratio] : known->second) least = std::min(least, ratio);
  return least;
}

double ScaledBounds::least(const Function& function, const Target& target) const {
  const Bound& bound = bound_of(function, target);
  const std::string name = target.to_string();
  std::optional<double> ratio = ratio_of(name, bound.anchors);
  if (!ratio) {
    std::istringstream lines(bound.anchors);
    for (std::string anchor; std::getline(lines, anchor);) {
      const std::optional<double> own = ratio_of(name, anchor + "\n");
      if (!own) return bound.seconds;
      ratio = std::min(*own, ratio.value_or(*own));
    }
  }
  return bound.seconds * std::max(1.0, ratio.value_or(1));
}

void ScaledBounds::learn(const Function& function, const std::string& text,
                         const TargetCosts& costs) {
  const Result<Target> target = Target::parse(costs.target);
  if (!target) return;
  double fastest = std::numeric_limits<double>::infinity();
  for (const MeasuredVariant& row : costs.variants)
    if (const Measured* m = measured(row.cost); m != nullptr && !row.variant.lowered())
      fastest = std::min(fastest, m->seconds());
  const Bound& bound = bound_of(function, *target);
  if (fastest == std::numeric_limits<double>::infinity() || bound.seconds <= 0) return;
  ratios_[{costs.target, bound.anchors}][text] = fastest / bound.seconds;
}

}  // namespace collage
