#include "compiler/pace.h"

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "compiler/costs_in_place.h"

namespace collage {

namespace {

// Looks end when the median of their sums is known to that part of it, or after so many seconds.
struct Looks {
  int least;
  double precision, seconds;
};
constexpr Looks kLooks = {10, 0.015, 8}, kFastLooks = {4, 0.03, 0.5};

}  // namespace

Paces known_paces(CostDatabase& database, const std::string& context) {
  Paces paces;
  for (const std::string& text : database.values("pace", context)) {
    const nlohmann::json row = parse_json(text);
    if (!row.is_object() || !row.contains("source") || !row["source"].is_string()) continue;
    if (!row.contains("pace") || !row["pace"].is_number()) continue;
    if (const double pace = row["pace"]; pace > 0) paces.emplace(row["source"], pace);
  }
  return paces;
}

double pace_of(const std::string& source_key, const Paces& paces) {
  const auto known = paces.find(source_key);
  return known == paces.end() ? 1 : known->second;
}

Status measure_pace(const NamedCover& cover, Executor& executor, std::span<const Tensor> inputs,
                    const PaceOptions& options, const std::string& source_key,
                    const std::string& context, CostDatabase& database) {
  CostsInPlace costs(executor, options.threads, options.cache, options.patience);
  const Looks& looks = options.effort == Effort::kFast ? kFastLooks : kLooks;
  const Stopwatch watch;
  for (int look = 0; look < looks.least || watch.seconds() < looks.seconds; ++look) {
    if (interrupted()) return {};
    TRY(costs.look(inputs));
    const Interval sum = costs.interval();
    const double half_width = (sum.high - sum.low) / 2;
    if (look + 1 >= looks.least && half_width <= looks.precision * costs.seconds()) break;
  }
  const double pace = costs.seconds() / cover.plain_seconds;
  log::info("its kernels take {:.3f} ms in their place, {:.3f} when measured: a pace of {:.3f}",
            1e3 * costs.seconds(), 1e3 * cover.plain_seconds, pace);
  database.put("pace", CostDatabase::key_of(source_key, context), source_key,
               nlohmann::json({{"source", source_key}, {"pace", pace}}).dump(), context);
  return {};
}

}  // namespace collage
