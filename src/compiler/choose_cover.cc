#include "compiler/choose_cover.h"

#include <algorithm>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "compiler/cover_contest.h"
#include "compiler/cover_timing.h"
#include "compiler/prediction.h"

namespace collage {

using nlohmann::json;

namespace {

// A cover's row: its figure or failure, and what it teaches.
json row_of(const Contestant& contestant, const CoverParts& parts, const std::string& model) {
  json row = {{"model", model}, {"parts", to_json(parts)}, {"failure", contestant.failure}};
  if (contestant.measured) row["cost"] = to_json(Cost(*contestant.measured));
  return row;
}

Contestant contestant_of(const json& row) {
  Contestant contestant;
  if (!row.is_object()) return contestant;
  contestant.failure = row.value("failure", "");
  if (!row.contains("cost")) return contestant;
  if (Result<Cost> cost = cost_from_json(row["cost"]); cost && measured(*cost) != nullptr)
    contestant.measured = *measured(*cost);
  return contestant;
}

// What the covers of other models in the database teach.
Correction correction_for(const std::string& model, const std::string& context,
                          CostDatabase& database) {
  std::vector<TaughtCover> taught;
  for (const std::string& text : database.values("cover", context)) {
    json row = parse_json(text);
    Contestant known = contestant_of(row);
    if (!known.measured || row.value("model", model) == model) continue;
    taught.push_back(
        {row["model"], cover_parts_from_json(row.value("parts", json())), known.measured->median});
  }
  return learn_correction(taught);
}

CoverParts parts_of(const NamedCover& cover, const ChooseOptions& options) {
  return {cover.plain_seconds, cover.switches, options.cold_bytes};
}

double predict(const CoverParts& parts, const Correction& correction) {
  return parts.seconds > 0 ? correction.predict(parts) : 0;  // 0: its costs are not known
}

struct Entry {   // a cover in the contest
  size_t cover;  // the first of those that are equal
  CoverParts parts;
  std::string text, key;  // in the database
};

struct Contender {
  Executor executor;
  std::vector<Tensor> outputs;
};

Result<std::shared_ptr<Contender>> prepare(const NamedCover& cover, const Lower& lower_cover,
                                           const Judge& judge, int threads) {
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  TRY(judge.error(executor, model_tolerance()));
  return std::make_shared<Contender>(Contender{std::move(executor), {}});
}

// As many programs at a time as hold no more constants than this beside one another.
constexpr double kConstantsAlive = 256 << 20;
constexpr size_t kMostAlive = 16;

}  // namespace

double predict_cover(const NamedCover& cover, CostDatabase& database,
                     const ChooseOptions& options) {
  return predict(parts_of(cover, options),
                 correction_for(options.model_key, options.context, database));
}

Result<ChosenCover> choose_cover(const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, LazyJudge& judges,
                                 CostDatabase& database, const ChooseOptions& options,
                                 Progress* progress) {
  Correction correction = correction_for(options.model_key, options.context, database);
  ChosenCover chosen;
  // One backend alone may be the cheapest cover already: equal covers are one contestant.
  std::vector<Entry> entries;
  std::vector<size_t> entry_of;  // by cover
  std::vector<Contestant> contestants;
  for (const NamedCover& cover : covers) {
    std::string text = cover_text(cover, candidates);
    log::debug("{}: {}", cover.name, text);
    CoverParts parts = parts_of(cover, options);
    double predicted = predict(parts, correction);
    chosen.timed.push_back({cover.name, cover.single_backend, predicted, std::nullopt, "", false,
                            predicted > 0 ? predicted - parts.seconds : 0});
    text = options.model_key + "\n" + sha256_hex(text);
    auto known = std::find_if(entries.begin(), entries.end(),
                              [&](const Entry& entry) { return entry.text == text; });
    entry_of.push_back(static_cast<size_t>(known - entries.begin()));
    if (known != entries.end()) continue;
    std::string key = CostDatabase::key_of(text, options.context);
    std::optional<std::string> row = database.find("cover", key);
    contestants.push_back(row ? contestant_of(parse_json(*row)) : Contestant());
    entries.push_back({entry_of.size() - 1, parts, std::move(text), std::move(key)});
  }
  auto is_known = [](const Contestant& c) { return c.measured || !c.failure.empty(); };
  std::vector<Contestant> before = contestants;
  const bool all_known = std::all_of(before.begin(), before.end(), is_known);
  if (options.untimed && !all_known) {
    chosen.timed[0].chosen = true;
    chosen.lowered = TRY(lower_cover(covers[0]));
    return chosen;
  }
  if (options.frozen && !all_known)
    return error(ErrorCode::kFrozenCosts, "the covers of this model were never timed end to end");

  const Judge* judge = nullptr;
  if (!all_known) judge = TRY(judges.get());
  Prepare enter = [&](size_t c) -> Result<RunBlock> {
    Result<std::shared_ptr<Contender>> ready =
        prepare(covers[entries[c].cover], lower_cover, *judge, options.threads);
    if (!ready) {
      log::warn("{} is left out: {}", covers[entries[c].cover].name, ready.status().to_string());
      return ready.status();
    }
    return RunBlock([contender = *ready, judge](std::vector<double>& samples) {
      return run_block(contender->executor, judge->inputs(), contender->outputs, {}, samples);
    });
  };
  ContestOptions contest;
  contest.alive = std::min(
      kMostAlive, 1 + static_cast<size_t>(kConstantsAlive / std::max(options.constant_bytes, 1.0)));
  contest.go_on = [&](size_t at, size_t count) {
    if (progress != nullptr) progress->update("timing covers", at, count, 0, 0);
    return !interrupted();
  };
  size_t winner = TRY(hold_contest(contestants, enter, contest));
  if (progress != nullptr && !all_known) progress->finish("timing covers");
  for (size_t c = 0; c < contestants.size(); ++c)
    if (!is_known(before[c]) && is_known(contestants[c]))
      database.put("cover", entries[c].key, entries[c].text,
                   row_of(contestants[c], entries[c].parts, options.model_key).dump(),
                   options.context);
  for (size_t i = 0; i < covers.size(); ++i) {
    chosen.timed[i].measured = contestants[entry_of[i]].measured;
    chosen.timed[i].failure = contestants[entry_of[i]].failure;
  }
  chosen.index = entries[winner].cover;
  chosen.timed[chosen.index].chosen = true;
  // The contest left the winner's program alive: its kernels are not compiled again.
  chosen.lowered = TRY(lower_cover(covers[chosen.index]));
  return chosen;
}

}  // namespace collage
