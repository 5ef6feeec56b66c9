// MockCosts: costs that a configuration makes up (partition/config.h), so that partitioning needs
// neither backends nor weights. They are no seconds, but as good to choose by.
#pragma once

#include <set>

#include "cost/estimator.h"
#include "partition/config.h"

namespace collage {

class MockCosts : public CostEstimator {
 public:
  // The configuration must outlive it and have mock costs.
  explicit MockCosts(const PartitionConfig& config);

  // Of a function's operators, as one kernel; the host's cost nothing.
  double cost(const Function& function, const Target& target) const;
  // The smallest cost of an operator.
  double unit() const { return unit_; }
  // Distinct kernels that were asked for, but the host's.
  size_t estimates() const { return asked_.size(); }

  // The variant in question at that cost. Ties go to earlier targets: the others' spreads are made
  // so wide that Measured::seconds() breaks them. kUsage: more than max_estimates.
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override;
  // Conversions are free.
  Result<ConversionRow> conversion_cost(const TensorType&, const Encoding&,
                                        const Encoding&) override {
    return ConversionRow{"", Measured{}};
  }
  std::optional<ConversionRow> known_conversion(const TensorType&, const Encoding&,
                                                const Encoding&) override {
    return ConversionRow{"", Measured{}};
  }
  double conversion_estimate(const TensorType&, const Encoding&, const Encoding&) const override {
    return 0;
  }

 private:
  const PartitionConfig& config_;
  double unit_ = 0;
  std::set<std::string> asked_;
};

}  // namespace collage
