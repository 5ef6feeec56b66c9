// MeasuredCosts of conversions: all backends are rivals.
#include <algorithm>
#include <limits>

#include "base/interrupt.h"
#include "cost/analytic.h"
#include "cost/measured_costs.h"

namespace collage {

using nlohmann::json;

double MeasuredCosts::conversion_estimate(const TensorType& type, const Encoding& from,
                                          const Encoding& to) const {
  return least_conversion_seconds(type, from, to, options_.compile.threads);
}

std::optional<ConversionRow> MeasuredCosts::find_conversion(const std::string& kind,
                                                            const std::string& text) {
  const auto decode = [](const json& value) -> Result<ConversionRow> {
    ConversionRow known = TRY(conversion_row_from_json(value));
    if (known.backend.empty() ? !std::holds_alternative<Invalid>(known.cost)
                              : find_backend(known.backend) == nullptr)
      return internal_error("there is no backend '{}'", known.backend);
    return known;
  };
  return find_value(database_, kind,
                    CostDatabase::key_of(text, keys_.conversion_context(options_.converters)),
                    decode);
}

std::optional<ConversionRow> MeasuredCosts::known_conversion(const TensorType& type,
                                                             const Encoding& from,
                                                             const Encoding& to) {
  std::optional<ConversionRow> known =
      find_conversion("conversion", CostKeys::conversion_text(type, from, to));
  counts_.cached += known.has_value();
  return known;
}

std::optional<ConversionRow> MeasuredCosts::known_or_tried_conversion(const TensorType& type,
                                                                      const Encoding& from,
                                                                      const Encoding& to) {
  const std::string text = CostKeys::conversion_text(type, from, to);
  std::optional<ConversionRow> known = find_conversion("conversion", text);
  return known ? known : find_conversion("trial", text);
}

Result<ConversionRow> MeasuredCosts::conversion_cost(const TensorType& type, const Encoding& from,
                                                     const Encoding& to) {
  if (std::optional<ConversionRow> known = known_conversion(type, from, to)) return *known;
  if (options_.frozen)
    return error(ErrorCode::kFrozenCosts, "no measurement of the conversion {}",
                 CostKeys::conversion_text(type, from, to));
  return ask_for_conversion("conversion", type, from, to);
}

Result<ConversionRow> MeasuredCosts::tried_conversion(const TensorType& type, const Encoding& from,
                                                      const Encoding& to) {
  if (std::optional<ConversionRow> known = known_or_tried_conversion(type, from, to)) {
    ++counts_.cached;
    return *known;
  }
  return ask_for_conversion("trial", type, from, to);
}

Result<ConversionRow> MeasuredCosts::ask_for_conversion(const std::string& kind,
                                                        const TensorType& type,
                                                        const Encoding& from, const Encoding& to) {
  const std::string text = CostKeys::conversion_text(type, from, to);
  const bool timed = kind != "trial";
  std::vector<std::string> backends;
  const std::set<std::string>& converters = options_.converters;
  for (Backend* backend : all_backends())
    if (converters.empty() || backend->traits().is_host || converters.contains(backend->name()))
      backends.push_back(backend->name());
  const std::optional<std::vector<TargetCosts>> answer =
      TRY(ask(task_of(ConvertRequest{type, from, to, timed}, std::move(backends)), text));
  if (!answer) return ConversionRow{"", Invalid{"not measured: interrupted"}};
  ++(timed ? counts_.measured : counts_.tried);
  ConversionRow best{"", Invalid{"no backend converts " + text}};
  double least = std::numeric_limits<double>::infinity();
  for (const TargetCosts& entry : *answer) {
    if (!entry.refusal.empty() && best.backend.empty()) best.cost = Invalid{entry.refusal};
    for (const MeasuredVariant& row : entry.variants) {
      const Measured* m = measured(row.cost);
      const double seconds = m != nullptr ? m->seconds() : 0;  // of the first that is right
      if (!(timed ? m != nullptr : row.tried) || seconds >= least) continue;
      least = seconds;
      best = {entry.target, row.cost};
    }
  }
  const std::string context = keys_.conversion_context(options_.converters),
                    key = CostDatabase::key_of(text, context), value = json_text(to_json(best));
  if (std::any_of(answer->begin(), answer->end(), lacks_resources)) {
    database_.remember(kind, key, value);
  } else {
    database_.put(kind, key, text, value, context);
  }
  return best;
}

}  // namespace collage
