#include "cost/given_costs.h"

#include "ir/text_printer.h"

namespace collage {

namespace {

// What is no time is not given.
std::optional<double> checked(std::optional<double> seconds) {
  constexpr double kYear = 3e7;
  return seconds && *seconds > 0 && *seconds < kYear ? seconds : std::nullopt;
}

Cost cost_of(double seconds) { return Measured{seconds, seconds, seconds, 1}; }

}  // namespace

std::optional<double> GivenCosts::given(const Function& function, const std::string& target,
                                        const Variant& variant) const {
  auto [text, is_new] = texts_.try_emplace(function);
  if (is_new) text->second = canonical_text(function);
  return checked(model_.kernel_seconds({text->second, target, variant.to_string()}));
}

std::optional<double> GivenCosts::given(const TensorType& type, const Encoding& from,
                                        const Encoding& to) const {
  return checked(
      model_.conversion_seconds({type.shape, type.dtype, from.to_string(), to.to_string()}));
}

void GivenCosts::apply(const Function& function, TargetCosts& costs) const {
  for (MeasuredVariant& row : costs.variants) {
    if (measured(row.cost) == nullptr && !(row.tried && std::holds_alternative<Unknown>(row.cost)))
      continue;
    if (const auto seconds = given(function, costs.target, row.variant))
      row.cost = cost_of(*seconds);
  }
}

Result<std::vector<TargetCosts>> GivenCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  std::vector<TargetCosts> answers(questions.size());
  std::vector<KernelQuestion> others;
  std::vector<size_t> asked;
  for (size_t q = 0; q < questions.size(); ++q) {
    const auto& [function, target, used] = questions[q];
    if (given(function, target.to_string(), used)) {
      answers[q] = TRY(measured_.tried_function(function, target, &used));
    } else {
      others.push_back(questions[q]);
      asked.push_back(q);
    }
  }
  std::vector<TargetCosts> measured = TRY(CostLayer::kernel_costs(others));
  for (size_t i = 0; i < asked.size(); ++i) answers[asked[i]] = std::move(measured[i]);
  for (size_t q = 0; q < questions.size(); ++q) apply(questions[q].function, answers[q]);
  return answers;
}

Result<ConversionRow> GivenCosts::conversion_cost(const TensorType& type, const Encoding& from,
                                                  const Encoding& to) {
  const std::optional<double> seconds = given(type, from, to);
  if (!seconds) return CostLayer::conversion_cost(type, from, to);
  ConversionRow row = TRY(measured_.tried_conversion(type, from, to));
  if (!std::holds_alternative<Invalid>(row.cost)) row.cost = cost_of(*seconds);
  return row;
}

std::optional<ConversionRow> GivenCosts::known_conversion(const TensorType& type,
                                                          const Encoding& from,
                                                          const Encoding& to) {
  if (given(type, from, to)) return std::nullopt;
  return CostLayer::known_conversion(type, from, to);
}

double GivenCosts::kernel_estimate(const Function& function, const TargetCosts& costs,
                                   size_t variant) const {
  const auto seconds = given(function, costs.target, costs.variants[variant].variant);
  return seconds ? *seconds : CostLayer::kernel_estimate(function, costs, variant);
}

double GivenCosts::conversion_estimate(const TensorType& type, const Encoding& from,
                                       const Encoding& to) const {
  const std::optional<double> seconds = given(type, from, to);
  return seconds ? *seconds : CostLayer::conversion_estimate(type, from, to);
}

}  // namespace collage
