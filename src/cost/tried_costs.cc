// MeasuredCosts without timing: which variants there are, and which of them compute right.
#include <algorithm>
#include <set>

#include "backend/offer.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "tensor_program/external_call.h"

namespace collage {

Result<TargetCosts> MeasuredCosts::listed_here(const Function& function, const CostKey& key) const {
  const Backend* backend = find_backend(key.target.kind);
  if (backend == nullptr) return internal_error("no backend {}", key.target.kind);
  CompileOptions options = options_.compile;
  options.rounding = key.rounding;
  Result<std::vector<Variant>> variants =
      without_exceptions([&] { return variants_to_cost(*backend, function, key.target, options); });
  TargetCosts entry;
  entry.target = key.target.to_string();
  if (!variants) {
    entry.refusal = variants.status().to_string();
  } else if (variants->empty()) {
    entry.refusal = "no variants";
  } else {
    for (Variant& variant : *variants) entry.variants.push_back({std::move(variant), Unknown{}});
  }
  if (!entry.refusal.empty()) log::info("{}: {}", entry.target, entry.refusal);
  return entry;
}

Result<std::vector<std::vector<TargetCosts>>> MeasuredCosts::offers(
    const std::vector<FunctionQuestion>& questions) {
  std::vector<std::vector<TargetCosts>> result;
  std::vector<std::pair<CostKey, TargetCosts>> listed;
  for (const auto& [function, targets] : questions) {
    const std::string text = canonical_text(function);
    std::vector<TargetCosts>& entries = result.emplace_back();
    for (const Target& target : targets) {
      entries.push_back(TRY(offer(function, {text, target}, listed)));
      store_->bounds.learn(function, text, entries.back());
    }
    // Of what has variants that nobody measured there will be another answer.
    for (const TargetCosts& entry : entries) {
      const bool complete = std::none_of(
          entry.variants.begin(), entry.variants.end(),
          [](const MeasuredVariant& row) { return std::holds_alternative<Unknown>(row.cost); });
      store_->counts.cached += complete && !entry.variants.empty();
      if (complete) store_->counts.add_invalid(entry);
    }
  }
  if (!listed.empty())
    store_->together([&] {
      for (const auto& [key, entry] : listed) store_->put("trial", key, entry);
    });
  return result;
}

Result<TargetCosts> MeasuredCosts::offer(const Function& function, const CostKey& key,
                                         std::vector<std::pair<CostKey, TargetCosts>>& fresh) {
  if (tensor_program::is_local(function)) return listed_here(function, key);
  if (std::optional<TargetCosts> known = store_->find_offer(key, &function, expects()))
    return std::move(*known);
  if (is_frozen()) return frozen_miss(key.text, key.target);
  Measurer::Answer listed =
      TRY(measurer_->ask(measurer_->task_of(ListRequest{{key.text}}, {key.target.to_string()})));
  if (!listed) return not_measured(function, key);
  fresh.emplace_back(key, listed->at(0));
  store_->add_hints(key, &function, listed->at(0));
  return std::move(listed->at(0));
}

// Whether a row of trials says what is wanted of that variant, or of any.
static bool answers(const TargetCosts& known, const Variant* wanted) {
  return wanted == nullptr ||
         std::any_of(known.variants.begin(), known.variants.end(), [&](const MeasuredVariant& row) {
           return row.variant == *wanted &&
                  (row.tried || !std::holds_alternative<Unknown>(row.cost));
         });
}

MeasureTask MeasuredCosts::trial_of(const CostKey& key, bool is_listed,
                                    const Variant* wanted) const {
  const std::string target = key.target.to_string();
  TryFirstRequest request{{key.text}};
  if (wanted != nullptr && is_listed) {
    request.named[target] = {*wanted};
    request.only_named = true;
  }
  MeasureTask task = measurer_->task_of(std::move(request), {target});
  if (wanted != nullptr && !is_listed) task.only = MeasuredVariant{*wanted, {}}.subject(target);
  return task;
}

TargetCosts MeasuredCosts::keep_trial(const CostKey& key, std::optional<TargetCosts> known,
                                      const Variant* wanted, TargetCosts answer) {
  const auto is_wanted = [&](const MeasuredVariant& row) { return row.variant == *wanted; };
  ++store_->counts.tried;
  // Of the others it says nothing new.
  if (known && answer.refusal.empty()) {
    for (MeasuredVariant& row : answer.variants) {
      if (!is_wanted(row)) continue;
      const auto old = std::find_if(known->variants.begin(), known->variants.end(), is_wanted);
      if (old != known->variants.end()) {
        *old = std::move(row);
      } else {
        known->variants.push_back(std::move(row));
      }
    }
    answer = std::move(*known);
  }
  store_->put("trial", key, answer);
  return answer;
}

Result<TargetCosts> MeasuredCosts::tried_function(const Function& function, const Target& target,
                                                  const Variant* wanted) {
  const CostKey key{canonical_text(function), target};
  if (tensor_program::is_local(function)) {
    // As with the host, whose kernels are not tried either: whole programs are verified.
    TargetCosts entry = TRY(listed_here(function, key));
    for (MeasuredVariant& row : entry.variants) row.tried = true;
    return entry;
  }
  if (std::optional<TargetCosts> known = store_->find_measured(key, &function, true)) {
    ++store_->counts.cached;
    store_->counts.add_invalid(*known);
    return std::move(*known);
  }
  std::optional<TargetCosts> known = store_->find("trial", key, &function);
  if (known && answers(*known, wanted)) {
    ++store_->counts.cached;
    return std::move(*known);
  }
  if (options_.machine != nullptr) return frozen_miss(key.text, target);  // it is not here
  const bool is_listed = known.has_value();
  Measurer::Answer answer = TRY(measurer_->ask(trial_of(key, is_listed, wanted)));
  if (!answer) return not_measured(function, key);
  TargetCosts entry = keep_trial(key, std::move(known), wanted, std::move(answer->at(0)));
  store_->counts.add_invalid(entry);
  // One that the target does not list was not tried.
  const bool unlisted = wanted != nullptr && !is_listed && entry.refusal.empty() &&
                        std::none_of(entry.variants.begin(), entry.variants.end(),
                                     [&](const auto& row) { return row.variant == *wanted; });
  return unlisted ? tried_function(function, target, wanted) : std::move(entry);
}

void MeasuredCosts::try_ahead(const std::vector<Trial>& trials,
                              const std::function<void(size_t)>& done) {
  struct Asked {
    CostKey key;
    std::optional<TargetCosts> known;
    const Variant* wanted;
  };
  std::vector<Asked> asked;
  std::vector<MeasureTask> tasks;
  std::set<std::string> seen;
  std::vector<CostKey> keys;
  for (size_t t = 0; store_->fetches() && t < trials.size(); ++t)
    keys.push_back({canonical_text(trials[t].function), trials[t].target});
  store_->expect(keys);
  for (const Trial& trial : trials) {
    if (tensor_program::is_local(trial.function)) continue;
    Asked one{{canonical_text(trial.function), trial.target}, {}, nullptr};
    if (trial.wanted) one.wanted = &*trial.wanted;
    if (!seen.insert(trial.target.to_string() + one.key.text).second ||
        store_->find_measured(one.key, nullptr, true))
      continue;
    one.known = store_->find("trial", one.key);
    if (one.known && answers(*one.known, one.wanted)) continue;
    tasks.push_back(trial_of(one.key, one.known.has_value(), one.wanted));
    asked.push_back(std::move(one));
  }
  const auto keep = [&](size_t task, TargetCosts answer) {
    auto& [key, known, wanted] = asked[task];
    keep_trial(key, std::move(known), wanted, std::move(answer));
  };
  measurer_->ask_beside(std::move(tasks), keep, done);
}

std::optional<ConversionRow> MeasuredCosts::known_or_tried_conversion(const TensorType& type,
                                                                      const Encoding& from,
                                                                      const Encoding& to) {
  const std::string text = CostKeys::conversion_text(type, from, to);
  std::optional<ConversionRow> known = store_->find_conversion("conversion", text);
  return known ? known : store_->find_conversion("trial", text);
}

Result<ConversionRow> MeasuredCosts::tried_conversion(const TensorType& type, const Encoding& from,
                                                      const Encoding& to) {
  if (std::optional<ConversionRow> known = known_or_tried_conversion(type, from, to)) {
    ++store_->counts.cached;
    return *known;
  }
  return ask_for_conversion("trial", type, from, to);
}

size_t MeasuredCosts::count_unknown(const std::string& text, const std::vector<Target>& targets,
                                    RoundingLimit rounding) {
  return static_cast<size_t>(
      std::count_if(targets.begin(), targets.end(), [&](const Target& target) {
        return !store_->find_measured({text, target, rounding});
      }));
}

bool MeasuredCosts::is_known(const Function& function, const Target& target) {
  return tensor_program::is_local(function) ||
         count_unknown(canonical_text(function), {target}) == 0;
}

bool MeasuredCosts::is_offer_known(const Function& function, const std::string& text,
                                   const Target& target) {
  return tensor_program::is_local(function) ||
         store_->find_offer({text, target}, nullptr, expects()).has_value();
}

}  // namespace collage
