// Costs as far as they are known. KnownCosts: nothing is measured for what is not known, which goes
// on at its estimate; whoever asked can see afterwards that the answer rests on it. FrozenCosts:
// what is not known is in no cover, as where a compilation's costs are frozen.
#pragma once

#include "cost/measured_costs.h"

namespace collage {

class KnownCosts : public CostLayer {
 public:
  explicit KnownCosts(MeasuredCosts& costs) : CostLayer(costs), costs_(costs) {}

  // Whether something was asked for that nobody measured.
  bool missed() const { return missed_; }

  bool only_knows() const override { return false; }
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;

 private:
  MeasuredCosts& costs_;
  bool missed_ = false;
};

class FrozenCosts : public CostLayer {
 public:
  using CostLayer::CostLayer;
  bool only_knows() const override { return true; }
};

}  // namespace collage
