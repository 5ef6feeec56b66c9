#include "cost/known_costs.h"

namespace collage {

Result<TargetCosts> KnownCosts::kernel_costs(const Function& function, const Target& target,
                                             const Variant& used) {
  if (costs_.is_known(function, target)) return costs_.kernel_costs(function, target, used);
  missed_ = true;
  TargetCosts costs;
  costs.target = target.to_string();
  costs.variants.push_back({used, Unknown{}});
  return costs;
}

Result<ConversionRow> KnownCosts::conversion_cost(const TensorType& type, const Encoding& from,
                                                  const Encoding& to) {
  if (std::optional<ConversionRow> known = known_conversion(type, from, to)) return *known;
  missed_ = true;
  return ConversionRow{"", Unknown{}};
}

}  // namespace collage
