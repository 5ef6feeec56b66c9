// DemandedCosts: the costs that a compilation searches by. Of an estimator's answers it leaves out
// what the user's demands refuse, and it tells whoever watches how far measuring is.
#pragma once

#include "base/progress.h"
#include "choose/costing.h"
#include "cost/estimator.h"

namespace collage {

class DemandedCosts : public CostEstimator {
 public:
  // `estimator` and `progress`, which may be null, must outlive it. Of `candidates` as many
  // functions and targets are asked for at most as have no costs; each takes `seconds_each`.
  DemandedCosts(CostEstimator& estimator, const VariantDemands& demands,
                const std::vector<CostedCandidate>& candidates, double seconds_each,
                Progress* progress);
  ~DemandedCosts() override;

  double seconds() const { return seconds_; }  // in which kernels were measured

  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override {
    return estimator_.conversion_cost(type, from, to);
  }
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override {
    return estimator_.known_conversion(type, from, to);
  }
  bool only_knows() const override { return estimator_.only_knows(); }
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override {
    return estimator_.kernel_estimate(function, costs, variant);
  }
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override {
    return estimator_.conversion_estimate(type, from, to);
  }

 private:
  CostEstimator& estimator_;
  const VariantDemands demands_;
  const double seconds_each_;
  Progress* const progress_;
  double seconds_ = 0;
  size_t all_ = 0, unknown_ = 0, asked_ = 0, failed_ = 0;
};

}  // namespace collage
