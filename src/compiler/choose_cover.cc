#include "compiler/choose_cover.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "compiler/cover_contest.h"
#include "compiler/cover_timing.h"
#include "compiler/prediction.h"
#include "cost/quiet.h"
#include "cost/row_values.h"

namespace collage {

namespace {

struct Entry {   // a cover in the contest
  size_t cover;  // the first of those that are equal
  CoverParts parts;
  double within;          // the error that its outputs may have; 0: that of float32
  std::string text, key;  // in the database
  double predicted = 0;   // before it first ran; 0: it did not yet
  double error = 0;       // that they have
};

// Its figure or failure, and what it teaches.
CoverRow row_of(const Contestant& contestant, const Entry& entry, const std::string& source_key) {
  return {source_key,   entry.parts.seconds, entry.parts.switches, contestant.failure,
          entry.within, entry.predicted,     entry.error,          contestant.measured};
}

// What the covers of other models in the database teach.
Correction taught_correction(CostDatabase& database, const ChooseOptions& options) {
  std::vector<TaughtCover> taught;
  for (const CoverRow& row : all_values(database, "cover", options.context, cover_row_from_json)) {
    if (!row.measured || row.source.empty() || row.source == options.source_key) continue;
    taught.push_back({row.source, {row.kernel_seconds, row.switches}, row.measured->median});
  }
  return learn_correction(taught);
}

// 0: its costs are not known.
double predict(const Correction& correction, const CoverParts& parts) {
  return parts.seconds > 0 ? correction.predict(parts) : 0;
}

// The same where outputs may have that error: who failed within a smaller one may try again.
Contestant contestant_within(const CoverRow& row, double within) {
  if (row.measured && row.error > within && within > 0)
    return {std::nullopt, fmt::format("errs by {:.2g} of the largest value", row.error)};
  if (!row.failure.empty() && row.within < within) return {};
  return {row.measured, row.failure};
}

CoverParts parts_of(const NamedCover& cover) { return {cover.plain_seconds, cover.switches}; }

// Covers as contestants: one for all that are equal (one backend alone may be the cheapest cover
// already), with what the database knows of them.
struct Entries {
  std::vector<Entry> entries;
  std::vector<size_t> entry_of;  // by cover
  std::vector<Contestant> contestants;
};

Entries enter_covers(const std::vector<NamedCover>& covers,
                     const std::vector<CostedCandidate>& candidates, CostDatabase& database,
                     const ChooseOptions& options) {
  Entries all;
  for (const NamedCover& cover : covers) {
    std::string text = cover_text(cover, candidates);
    log::debug("{}: {}", cover.name, text);
    text = options.model_key + "\n" + sha256_hex(text);
    const bool lowered = is_lowered(cover, candidates);
    if (lowered) text += "\n" + options.constants;
    auto known = std::find_if(all.entries.begin(), all.entries.end(),
                              [&](const Entry& entry) { return entry.text == text; });
    all.entry_of.push_back(static_cast<size_t>(known - all.entries.begin()));
    if (known != all.entries.end()) continue;
    std::string key = CostDatabase::key_of(text, options.context);
    const std::optional<CoverRow> row = find_value(database, "cover", key, cover_row_from_json);
    const double within = lowered ? options.max_error : 0;
    all.contestants.push_back(row ? contestant_within(*row, within) : Contestant());
    Entry entry{all.entry_of.size() - 1, parts_of(cover), within, std::move(text), std::move(key)};
    if (row) entry.predicted = row->predicted;
    all.entries.push_back(std::move(entry));
  }
  return all;
}

struct Contender {
  Executor executor;
  std::vector<Tensor> outputs;
};

Result<std::shared_ptr<Contender>> prepare(const NamedCover& cover, const Lower& lower_cover,
                                           const Judge& judge, int threads, Entry& entry) {
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  entry.error = TRY(judge.error(executor, model_tolerance(entry.within)));
  return std::make_shared<Contender>(Contender{std::move(executor), {}});
}

// As many programs at a time as hold no more constants than this beside one another.
constexpr double kConstantsAlive = 256 << 20;
constexpr size_t kMostAlive = 16;

}  // namespace

CoverPrediction predict_cover(const NamedCover& cover,
                              const std::vector<CostedCandidate>& candidates,
                              CostDatabase& database, const ChooseOptions& options) {
  const double now = predict(taught_correction(database, options), parts_of(cover));
  const double first = enter_covers({cover}, candidates, database, options).entries[0].predicted;
  return {first > 0 ? first : now, now};
}

size_t fastest_known(const std::vector<NamedCover>& covers,
                     const std::vector<CostedCandidate>& candidates, CostDatabase& database,
                     const ChooseOptions& options) {
  const Entries all = enter_covers(covers, candidates, database, options);
  size_t fastest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < covers.size(); ++i) {
    const std::optional<Measured>& known = all.contestants[all.entry_of[i]].measured;
    if (!known || known->median >= least) continue;
    fastest = i;
    least = known->median;
  }
  return fastest;
}

Result<ChosenCover> choose_cover(const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, LazyJudge& judges,
                                 CostDatabase& database, const ChooseOptions& options,
                                 Progress* progress) {
  ChosenCover chosen;
  // No structured binding: clang 14 captures none in lambdas.
  Entries all = enter_covers(covers, candidates, database, options);
  const Correction correction = taught_correction(database, options);
  for (size_t i = 0; i < covers.size(); ++i) {
    const CoverParts parts = parts_of(covers[i]);
    Entry& entry = all.entries[all.entry_of[i]];
    const double now = predict(correction, parts);
    if (entry.predicted == 0) entry.predicted = now;
    chosen.timed.push_back({covers[i].name, covers[i].single_backend, entry.predicted, std::nullopt,
                            "", false, entry.predicted - parts.seconds, now});
    if (entry.predicted == 0) chosen.timed.back().correction_seconds = 0;
  }
  std::vector<Entry>& entries = all.entries;
  std::vector<size_t>& entry_of = all.entry_of;
  std::vector<Contestant>& contestants = all.contestants;
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
        prepare(covers[entries[c].cover], lower_cover, *judge, options.threads, entries[c]);
    if (!ready) {
      std::string text = fmt::format("{} is left out: {}", covers[entries[c].cover].name,
                                     ready.status().to_string());
      // Wrong is news, beyond a budget is none.
      if (entries[c].within > 0) {
        log::info("{}", text);
      } else {
        log::warn("{}", text);
      }
      return ready.status();
    }
    return RunBlock([contender = *ready, judge,
                     threads = options.threads](std::vector<double>& samples) {
      const auto turn = turn_to_measure();
      BlockOptions block;
      block.quiet = &Quiet::here();
      block.quiet->await(threads);
      return run_block(contender->executor, judge->inputs(), contender->outputs, block, samples);
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
                   json_text(to_json(row_of(contestants[c], entries[c], options.source_key))),
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
