#include "cost/known_costs.h"

namespace collage {

Result<std::vector<TargetCosts>> KnownCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  if (missing_ == Missing::kRefuse) return CostLayer::kernel_costs(questions);
  std::vector<TargetCosts> answers;
  for (const KernelQuestion& question : questions) {
    if (costs_.is_known(question.function, question.target)) {
      answers.push_back(TRY(costs_.kernel_costs({question})).at(0));
      continue;
    }
    missed_ = true;
    answers.emplace_back().target = question.target.to_string();
    answers.back().variants.push_back({question.used, Unknown{}});
  }
  return answers;
}

Result<ConversionRow> KnownCosts::conversion_cost(const TensorType& type, const Encoding& from,
                                                  const Encoding& to) {
  if (missing_ == Missing::kRefuse) return CostLayer::conversion_cost(type, from, to);
  if (std::optional<ConversionRow> known = known_conversion(type, from, to)) return *known;
  missed_ = true;
  return ConversionRow{"", Unknown{}};
}

}  // namespace collage
