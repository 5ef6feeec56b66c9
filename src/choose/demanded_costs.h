// DemandedCosts: the costs that a compilation searches by. Of measured ones it leaves out
// what the user's demands refuse, and it tells whoever watches how far measuring is.
#pragma once

#include "base/progress.h"
#include "choose/costing.h"
#include "cost/measured_costs.h"

namespace collage {

class DemandedCosts : public MeasuredCosts {
 public:
  // `progress`, which may be null, must outlive it. Of `candidates` as many functions and targets
  // are asked for at most as have no costs.
  DemandedCosts(const MeasuredCosts& costs, const VariantDemands& demands,
                const std::vector<CostedCandidate>& candidates, Progress* progress);
  ~DemandedCosts() override;

  double seconds() const { return seconds_; }  // in which kernels were measured

  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;

 private:
  const VariantDemands demands_;
  Progress* const progress_;
  double seconds_ = 0;
  size_t all_ = 0, unknown_ = 0, asked_ = 0, failed_ = 0;
};

}  // namespace collage
