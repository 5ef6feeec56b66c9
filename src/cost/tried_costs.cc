// MeasuredCosts without timing: variants are tried until one computes right.
#include <algorithm>

#include "base/interrupt.h"
#include "base/log.h"
#include "cost/measured_costs.h"
#include "ir/text_printer.h"

namespace collage {

Result<TargetCosts> MeasuredCosts::tried_function(const Function& function, const Target& target,
                                                  const Variant* wanted) {
  std::string text = canonical_text(function);
  if (std::optional<TargetCosts> known =
          find_function(text, target, true, Precision::kFull, &function)) {
    ++counts_.cached;
    count_invalid(*known);
    return std::move(*known);
  }
  auto is_wanted = [&](const MeasuredVariant& row) { return row.variant == *wanted; };
  std::optional<TargetCosts> known = find_costs("trial", text, target, Precision::kFull, &function);
  if (known && (wanted == nullptr ||
                std::any_of(known->variants.begin(), known->variants.end(), [&](const auto& row) {
                  return is_wanted(row) &&
                         (row.tried || !std::holds_alternative<Unknown>(row.cost));
                }))) {
    ++counts_.cached;
    return std::move(*known);
  }
  MeasureTask task = function_task(text);
  task.targets = {target.to_string()};
  task.until_right = true;
  if (wanted != nullptr) task.only = MeasuredVariant{*wanted, {}}.subject(target.to_string());
  Result<std::vector<TargetCosts>> answer =
      interrupted() ? Result<std::vector<TargetCosts>>(Status(ErrorCode::kUnavailable, ""))
                    : run_worker(std::move(task), text);
  if (answer.status().code() == ErrorCode::kUnavailable) {
    if (!interrupted()) return answer.status();
    return not_measured(function, target);
  }
  TargetCosts entry;
  if (answer) {
    entry = std::move(answer->at(0));
  } else {
    entry.target = target.to_string();
    entry.refusal = answer.status().to_string();
    log::info("{}: {}", entry.target, entry.refusal);
  }
  ++counts_.tried;
  // Of the others it says nothing new.
  if (known && entry.refusal.empty()) {
    for (const MeasuredVariant& row : entry.variants)
      for (MeasuredVariant& old : known->variants)
        if (old.variant == row.variant && is_wanted(row)) old = row;
    entry = std::move(*known);
  }
  count_invalid(entry);
  std::string context = function_context(target, Precision::kFull);
  database_.put("trial", CostDatabase::key_of(text, context), text, json_text(to_json(entry)),
                context);
  return entry;
}

std::optional<MeasuredCosts::Conversion> MeasuredCosts::known_or_tried_conversion(
    const TensorType& type, const Encoding& from, const Encoding& to) {
  std::string text = conversion_text(type, from, to);
  std::optional<Conversion> known = find_conversion("conversion", text);
  return known ? known : find_conversion("trial", text);
}

Result<MeasuredCosts::Conversion> MeasuredCosts::tried_conversion(const TensorType& type,
                                                                  const Encoding& from,
                                                                  const Encoding& to) {
  if (std::optional<Conversion> known = known_or_tried_conversion(type, from, to)) {
    ++counts_.cached;
    return std::move(*known);
  }
  std::string text = conversion_text(type, from, to);
  Conversion first{"", Invalid{"no backend converts " + text}};
  if (interrupted()) return first;
  MeasureTask task = conversion_task(type, from, to);
  task.until_right = true;
  Result<std::vector<TargetCosts>> answer = run_worker(std::move(task), text);
  if (answer.status().code() == ErrorCode::kUnavailable) {
    if (!interrupted()) return answer.status();
    return first;
  }
  ++counts_.tried;
  if (!answer) {
    first.cost = Invalid{answer.status().to_string()};
  } else {
    for (const TargetCosts& entry : *answer)
      if (entry.refusal.empty() && !entry.variants.empty() && entry.variants[0].tried)
        first = {entry.target, Unknown{}};
  }
  put_conversion("trial", text, first);
  return first;
}

}  // namespace collage
