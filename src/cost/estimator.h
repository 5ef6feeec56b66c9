// CostEstimator: what kernels and conversions cost, for whoever chooses by it. A choice begins with
// estimates and with what is known; of what the covers it finds use it asks for the cost, and
// chooses again (choose/cover_problem.h). So only what could be in a cover is ever measured, and
// the search itself is a pure function.
#pragma once

#include "cost/row_values.h"
#include "ir/expr.h"

namespace collage {

// A kernel of a cover whose cost nobody knows.
struct KernelQuestion {
  Function function;
  Target target;
  Variant used;
};

class CostEstimator {
 public:
  virtual ~CostEstimator() = default;

  // The costs of all of each function's variants on its target, in their order; what remains
  // Unknown goes on at its estimate.
  virtual Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) = 0;
  // Of the cheapest way to change the encoding of a tensor; Invalid where there is none.
  virtual Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                                const Encoding& to) = 0;
  // What is known of it already, if anything. Cheap: asked for every pair of encodings.
  virtual std::optional<ConversionRow> known_conversion(const TensorType& type,
                                                        const Encoding& from,
                                                        const Encoding& to) = 0;

  // Whether it answers for nothing but what is known: nothing else may be in a cover.
  virtual bool only_knows() const { return false; }

  // Seconds that stand for a cost that nobody knows: of a function's variant, by its position among
  // them, and of a conversion.
  virtual double kernel_estimate(const Function& function, const TargetCosts& costs,
                                 size_t variant) const = 0;
  virtual double conversion_estimate(const TensorType& type, const Encoding& from,
                                     const Encoding& to) const = 0;
};

}  // namespace collage
