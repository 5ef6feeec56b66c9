// Costs as far as they are known.
#pragma once

#include "cost/measured_costs.h"

namespace collage {

// What happens where a cost is missing, other than that it is measured.
enum class Missing {
  kEstimate,  // it goes on at its estimate
  kRefuse,    // it is in no cover, as where a compilation's costs are frozen; but for the host's
};

class KnownCosts : public CostLayer {
 public:
  KnownCosts(MeasuredCosts& costs, Missing missing)
      : CostLayer(costs), costs_(costs), missing_(missing) {}

  // Whether something goes on at its estimate.
  bool missed() const { return missed_; }

  bool only_knows() const override { return missing_ == Missing::kRefuse; }
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;

 private:
  MeasuredCosts& costs_;
  const Missing missing_;
  bool missed_ = false;
};

}  // namespace collage
