// MeasuredCosts without timing: variants are tried until one computes right.
#include <algorithm>

#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "tensor_program/external_call.h"

namespace collage {

Result<TargetCosts> MeasuredCosts::tried_function(const Function& function, const Target& target,
                                                  const Variant* wanted) {
  if (tensor_program::is_local(function)) {
    // As with the host, whose kernels are not tried either: whole programs are verified.
    TargetCosts entry = TRY(listed_here(function, target, Precision::kFull));
    for (MeasuredVariant& row : entry.variants) row.tried = true;
    return entry;
  }
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
  if (wanted != nullptr && known) {
    task.named[task.targets[0]] = {*wanted};
    task.only_named = true;
  }
  if (wanted != nullptr && !known)
    task.only = MeasuredVariant{*wanted, {}}.subject(target.to_string());
  std::optional<std::vector<TargetCosts>> answer = TRY(ask(std::move(task), text));
  if (!answer) return not_measured(function, target);
  TargetCosts entry = std::move(answer->at(0));
  ++counts_.tried;
  // Of the others it says nothing new.
  if (known && entry.refusal.empty()) {
    for (MeasuredVariant& row : entry.variants) {
      if (!is_wanted(row)) continue;
      const auto old = std::find_if(known->variants.begin(), known->variants.end(), is_wanted);
      if (old != known->variants.end()) {
        *old = std::move(row);
      } else {
        known->variants.push_back(std::move(row));
      }
    }
    entry = std::move(*known);
  }
  count_invalid(entry);
  put_costs("trial", text, target, Precision::kFull, entry);
  // One that the target does not list was not tried.
  const bool unlisted = wanted != nullptr && !known && entry.refusal.empty() &&
                        std::none_of(entry.variants.begin(), entry.variants.end(), is_wanted);
  return unlisted ? tried_function(function, target, wanted) : std::move(entry);
}

}  // namespace collage
