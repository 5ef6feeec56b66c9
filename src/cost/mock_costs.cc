#include "cost/mock_costs.h"

#include <algorithm>
#include <cmath>

#include "ir/text_printer.h"
#include "ir/visitor.h"

namespace collage {

namespace {

size_t count_operators(const Function& function) {
  size_t count = 0;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) continue;
    count += call->op != nullptr ? 1 : 0;
    if (as<FunctionNode>(call->callee) != nullptr)
      count += count_operators(std::static_pointer_cast<const FunctionNode>(call->callee));
  }
  return count;
}

}  // namespace

MockCosts::MockCosts(const PartitionConfig& config) : config_(config) {
  for (const auto& [target, cost] : config.mock_costs->per_op)
    if (cost > 0 && (unit_ == 0 || cost < unit_)) unit_ = cost;
  if (unit_ == 0) unit_ = 1;
}

double MockCosts::cost(const Function& function, const Target& target) const {
  const auto per_op = config_.mock_costs->per_op.find(target.kind);
  if (per_op == config_.mock_costs->per_op.end()) return 0;
  double cost = 0;
  for (size_t k = 0, operators = count_operators(function); k < operators; ++k)
    cost += per_op->second * std::pow(config_.mock_costs->fusion_benefit, static_cast<double>(k));
  return cost;
}

Result<std::vector<TargetCosts>> MockCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  // Of the smallest cost: far below any difference that is no tie, far above rounding.
  constexpr double kPerTarget = 1e-10;
  // What Measured::seconds() counts of a spread.
  const double per_spread = Measured{0, 0, 1, 1}.seconds();
  std::vector<TargetCosts> answers;
  for (const auto& [function, target, used] : questions) {
    size_t position = 0;
    while (position < config_.specs.size() && !(config_.specs[position]->target == target))
      ++position;
    const size_t most = config_.mock_costs->max_estimates;
    if (position < config_.specs.size() &&
        asked_.insert(target.kind + "\n" + canonical_text(function)).second && most != 0 &&
        asked_.size() > most)
      return config_.error_at(
          "/mock_costs/max_estimates",
          fmt::format("more than {} distinct kernels would be estimated", most));
    const double own = cost(function, target);
    const double tie = unit_ * kPerTarget * static_cast<double>(position);
    TargetCosts& answer = answers.emplace_back();
    answer.target = target.to_string();
    answer.variants.push_back({used, Measured{own, own, own + tie / per_spread, 1}});
  }
  return answers;
}

double MockCosts::kernel_estimate(const Function& function, const TargetCosts& costs,
                                  size_t) const {
  const Result<Target> target = Target::parse(costs.target);
  return target ? cost(function, *target) : 0;
}

}  // namespace collage
