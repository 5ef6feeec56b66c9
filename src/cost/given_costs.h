// GivenCosts: what a library's user says kernels take (collage.h), and measured costs of the rest.
// Kernels of given costs are tried when a cover uses them: they must compile and compute right.
#pragma once

#include <map>

#include "cost/measured_costs.h"

namespace collage {

class GivenCosts : public CostLayer {
 public:
  // Both must outlive it.
  GivenCosts(CostModel& model, MeasuredCosts& measured)
      : CostLayer(measured), model_(model), measured_(measured) {}

  // Puts given costs in place of what is known of a function's kernels.
  void apply(const Function& function, TargetCosts& costs) const;

  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override;
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override;
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override;

 private:
  std::optional<double> given(const Function& function, const std::string& target,
                              const Variant& variant) const;
  std::optional<double> given(const TensorType& type, const Encoding& from,
                              const Encoding& to) const;

  CostModel& model_;
  MeasuredCosts& measured_;
  mutable std::map<Function, std::string> texts_;
};

}  // namespace collage
