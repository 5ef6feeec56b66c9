// MeasuredCosts of what a schedule search tries.
#include <algorithm>

#include "base/interrupt.h"
#include "cost/measured_costs.h"
#include "ir/text_printer.h"

namespace collage {

namespace {

// The kind of rows that say there has been a search, and what it found.
constexpr const char* kSearched = "schedules";

}  // namespace

Result<std::optional<TargetCosts>> MeasuredCosts::time_variants(
    const Function& function, const Target& target, const std::vector<Variant>& variants,
    Effort effort) {
  if (interrupted() || variants.empty()) return std::optional<TargetCosts>();
  const std::string text = canonical_text(function);
  const std::string name = target.to_string();
  MeasureTask task = task_of(TimeRequest{{text, {{name, variants}}, true}}, {name});
  task.effort = effort;
  std::optional<std::vector<TargetCosts>> answer = TRY(ask(std::move(task), text));
  if (!answer) return std::optional<TargetCosts>();
  learn_usual(answer->at(0).conditions);
  return std::optional(std::move(answer->at(0)));
}

void MeasuredCosts::add_searched(FunctionRequest& request, const Target& target) {
  const std::optional<TargetCosts> searched =
      find_costs(kSearched, request.text, target, RoundingLimit::kDefault);
  if (!searched) return;
  for (const MeasuredVariant& row : searched->variants)
    request.named[target.to_string()].push_back(row.variant);
}

bool MeasuredCosts::were_schedules_searched(const Function& function, const Target& target) {
  const std::string text = canonical_text(function);
  return find_costs(kSearched, text, target, RoundingLimit::kDefault).has_value();
}

bool MeasuredCosts::was_searched_for(const Function& function, const Target& target,
                                     const Variant& variant) {
  const std::string text = canonical_text(function);
  const std::optional<TargetCosts> searched =
      find_costs(kSearched, text, target, RoundingLimit::kDefault);
  return searched && std::any_of(searched->variants.begin(), searched->variants.end(),
                                 [&](const auto& row) { return row.variant == variant; });
}

Status MeasuredCosts::end_schedule_search(const Function& function, const Target& target,
                                          const std::optional<MeasuredVariant>& found) {
  const std::string text = canonical_text(function);
  TargetCosts searched;
  searched.target = target.to_string();
  if (found) searched.variants.push_back(*found);
  put_costs(kSearched, text, target, RoundingLimit::kDefault, searched);
  if (!found) return {};
  std::optional<TargetCosts> known =
      find_costs("function", text, target, RoundingLimit::kDefault, &function);
  if (!known) return internal_error("a schedule was found for what was not measured");
  known->variants.push_back(*found);
  put_costs("function", text, target, RoundingLimit::kDefault, *known);
  bounds_.learn(function, text, *known);
  return {};
}

}  // namespace collage
