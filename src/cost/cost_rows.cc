// MeasuredCosts' rows in the database: what is kept, and what of it may be used.
#include <algorithm>

#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "measure/fault.h"
#include "tensor_program/external_call.h"

namespace collage {

using nlohmann::json;

namespace {

// Whether what was measured can be what this function's kernels are: a row may hold anything.
Status check_fit(const TargetCosts& costs, const Function& function) {
  std::vector<TensorType> inputs;
  for (const Expr& param : function->params) inputs.push_back(param->tensor_type());
  const std::vector<TensorType> outputs = function->result_type().leaves();
  for (const MeasuredVariant& row : costs.variants)
    if (!std::holds_alternative<Invalid>(row.cost))
      TRY(check_fit(row.variant, inputs, outputs).with_context(row.variant.name));
  return {};
}

Result<TargetCosts> decoded(const json& value, const Target& target, const Function* function) {
  TargetCosts costs = TRY(target_costs_from_json(value));
  if (costs.target != target.to_string())
    return internal_error("it is of the target '{}', not '{}'", costs.target, target.to_string());
  if (function != nullptr) TRY(check_fit(costs, *function));
  return costs;
}

}  // namespace

void MeasuredCosts::add_quarantine(MeasureTask& task, const std::string& text) {
  for (const std::string& target : task.targets) {
    const std::string key = CostDatabase::key_of(text, CostKeys::quarantine_context(target));
    if (auto known = find_value(database_, "quarantine", key, quarantine_from_json)) {
      std::erase_if(*known, [&](const auto& entry) { return may_end(entry.second); });
      task.skip.merge(*known);
    }
  }
}

void MeasuredCosts::put_costs(const std::string& kind, const std::string& text,
                              const Target& target, RoundingLimit rounding,
                              const TargetCosts& costs) {
  const std::string context = context_of(target, rounding),
                    key = CostDatabase::key_of(text, context), value = json_text(to_json(costs));
  if (lacks_resources(costs)) return database_.remember(kind, key, value);
  database_.put(kind, key, text, value, context);
}

bool MeasuredCosts::may_end(const Invalid& invalid) const {
  return invalid.failure == WorkerFailure::kTimeout &&
         invalid.waited < options_.limits.silence_seconds;
}

std::optional<TargetCosts> MeasuredCosts::find_costs(const std::string& kind,
                                                     const std::string& text, const Target& target,
                                                     RoundingLimit rounding,
                                                     const Function* function) {
  const auto decode = [&](const json& value) { return decoded(value, target, function); };
  std::optional<TargetCosts> known =
      find_value(database_, kind, CostDatabase::key_of(text, context_of(target, rounding)), decode);
  if (known && std::any_of(known->variants.begin(), known->variants.end(), [&](const auto& row) {
        const auto* invalid = std::get_if<Invalid>(&row.cost);
        return invalid != nullptr && may_end(*invalid);
      }))
    return std::nullopt;
  return known;
}

std::optional<TargetCosts> MeasuredCosts::find_function(const std::string& text,
                                                        const Target& target, bool of_any_care,
                                                        RoundingLimit rounding,
                                                        const Function* function) {
  std::optional<TargetCosts> known = find_costs("function", text, target, rounding, function);
  if (!known) return std::nullopt;
  if (!of_any_care) {
    // Care is for what was timed.
    bool timed = std::any_of(known->variants.begin(), known->variants.end(),
                             [](const MeasuredVariant& v) { return measured(v.cost); });
    bool careless = known->effort < options_.effort ||
                    (options_.effort == Effort::kMax && known->conditions.disturbed &&
                     !measured_now_.count(context_of(target, rounding) + text));
    if (timed && careless) return std::nullopt;
  }
  return known;
}

std::optional<TargetCosts> MeasuredCosts::find_hints(const std::string& text, const Target& target,
                                                     const Function* function) {
  const std::string key = CostDatabase::key_of(text, context_of(target, RoundingLimit::kDefault));
  for (const char* kind : {"function", "trial"}) {
    const std::optional<std::string> value = database_.find_foreign(kind, key);
    if (!value) continue;
    Result<TargetCosts> hints = decoded(parse_json(*value), target, function);
    if (!hints) {
      database_.warn_of_row(kind, key, hints.status());
      continue;
    }
    for (MeasuredVariant& row : hints->variants) {
      const Measured* figure = measured(row.cost);
      if (figure == nullptr) continue;
      row.elsewhere = figure->seconds();
      row.cost = Unknown{};
    }
    return std::move(hints).value();
  }
  return std::nullopt;
}

std::optional<TargetCosts> MeasuredCosts::find_offer(const std::string& text, const Target& target,
                                                     const Function* function) {
  std::optional<TargetCosts> known =
      find_function(text, target, options_.frozen, RoundingLimit::kDefault, function);
  if (known) return known;
  known = find_costs("trial", text, target, RoundingLimit::kDefault, function);
  if (!known) known = find_hints(text, target, function);
  if (known)
    for (MeasuredVariant& row : known->variants) row.tried = false;  // its cost is wanted
  return known;
}

size_t MeasuredCosts::count_unknown(const std::string& text, const std::vector<Target>& targets,
                                    RoundingLimit rounding) {
  return static_cast<size_t>(
      std::count_if(targets.begin(), targets.end(), [&](const Target& target) {
        return !find_function(text, target, options_.frozen, rounding);
      }));
}

bool MeasuredCosts::is_known(const Function& function, const Target& target) {
  return tensor_program::is_local(function) ||
         count_unknown(canonical_text(function), {target}) == 0;
}

bool MeasuredCosts::is_offer_known(const Function& function, const std::string& text,
                                   const Target& target) {
  return tensor_program::is_local(function) || find_offer(text, target).has_value();
}

}  // namespace collage
