// MeasuredCosts of what no worker is asked about.
#include "backend/offer.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "cost/measured_costs.h"

namespace collage {

Status MeasuredCosts::frozen_miss(const std::string& text, const Target& target) {
  return error(ErrorCode::kFrozenCosts, "no measurement of {} on {}", text.substr(0, 200),
               target.to_string());
}

Result<TargetCosts> MeasuredCosts::listed_here(const Function& function, const Target& target,
                                               RoundingLimit rounding) const {
  const Backend* backend = find_backend(target.kind);
  if (backend == nullptr) return internal_error("no backend {}", target.kind);
  CompileOptions options = options_.compile;
  options.rounding = rounding;
  Result<std::vector<Variant>> variants =
      without_exceptions([&] { return variants_to_cost(*backend, function, target, options); });
  TargetCosts entry;
  entry.target = target.to_string();
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

Result<TargetCosts> MeasuredCosts::frozen_answer(const Function& function, const std::string& text,
                                                 const Target& target,
                                                 RoundingLimit rounding) const {
  const Backend* backend = find_backend(target.kind);
  if (backend == nullptr || !backend->traits().is_host) return frozen_miss(text, target);
  return listed_here(function, target, rounding);
}

Result<TargetCosts> MeasuredCosts::not_measured(const Function& function,
                                                const Target& target) const {
  const Backend* backend = find_backend(target.kind);
  if (backend != nullptr && backend->traits().is_host)
    return listed_here(function, target, RoundingLimit::kDefault);
  TargetCosts entry;
  entry.target = target.to_string();
  entry.refusal = "not measured: interrupted";
  return entry;
}

}  // namespace collage
