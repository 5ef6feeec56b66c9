#include "choose/in_situ_ratio.h"

#include "base/interrupt.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "choose/in_situ_costs.h"
#include "cost/row_values.h"
#include "measure/noise_gate.h"

namespace collage {

namespace {

// Looks end when the median of their sums is known to that part of it, or after so many seconds.
struct Looks {
  int least;
  double precision, seconds;
};
constexpr Looks kLooks = {10, 0.015, 8}, kFastLooks = {4, 0.03, 0.5};

}  // namespace

std::optional<double> known_in_situ_ratio(CostDatabase& database, const std::string& source_key,
                                          const std::string& context) {
  const std::optional<InSituRow> row = find_value(
      database, "in_situ", CostDatabase::key_of(source_key, context), in_situ_row_from_json);
  return row ? std::optional(row->ratio) : std::nullopt;
}

Status measure_in_situ_ratio(const NamedCover& cover, Executor& executor,
                             std::span<const Tensor> inputs, const InSituOptions& options,
                             CostDatabase& database, NoiseGate& gate) {
  const auto turn = turn_to_measure();
  InSituCosts costs(executor, options.threads, options.cache, gate);
  const Looks& looks = options.effort == Effort::kFast ? kFastLooks : kLooks;
  const Stopwatch watch;
  for (int look = 0; look < looks.least || watch.seconds() < looks.seconds; ++look) {
    if (interrupted()) return {};
    TRY(costs.look(inputs));
    const Interval sum = costs.interval();
    const double half_width = (sum.high - sum.low) / 2;
    if (look + 1 >= looks.least && half_width <= looks.precision * costs.seconds()) break;
  }
  const double ratio = costs.seconds() / cover.plain_seconds;
  log::info("its kernels take {:.3f} ms in situ, {:.3f} in isolation: a ratio of {:.3f}",
            1e3 * costs.seconds(), 1e3 * cover.plain_seconds, ratio);
  const nlohmann::json row = to_json(InSituRow{options.source_key, ratio});
  if (!in_situ_row_from_json(row)) {
    log::info("that ratio is not kept: the machine must have been busy with something else");
    return {};
  }
  database.put("in_situ", CostDatabase::key_of(options.source_key, options.context),
               options.source_key, json_text(row), options.context);
  return {};
}

}  // namespace collage
