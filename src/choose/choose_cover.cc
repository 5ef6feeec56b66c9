#include "choose/choose_cover.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/machine_limits.h"
#include "choose/cover_timing.h"
#include "choose/prediction.h"
#include "choose/race.h"
#include "collage/device.h"
#include "cost/row_values.h"
#include "measure/noise_gate.h"

namespace collage {

namespace {

// What its kernels and conversions take, each measured alone.
double alone(const NamedCover& cover) { return cover.plain_seconds - cover.overlap_seconds; }

struct Entry {            // a cover in the race
  size_t cover;           // the first of those that are equal
  std::string text, key;  // in the database
  double predicted = 0;   // before it first ran; 0: it did not yet
  std::optional<CoverCheck> check;
  size_t bytes = 0;  // that its program keeps; 0: not known
  // It cannot be made.
  bool is_broken = false;
  bool is_checked() const { return check || is_broken; }
};

// Its figure, and what it teaches.
TimingRow timing_row(const Measured& figure, const NamedCover& cover, const Entry& entry,
                     const std::string& source_key) {
  return {source_key, alone(cover), cover.switches, entry.predicted, figure, entry.bytes};
}

// What the covers of other models in the database teach.
Correction taught_correction(const ChooseContext& context) {
  std::vector<TimingRow> taught;
  for (const TimingRow& row :
       all_values(context.database, "cover", context.options.context, cover_row_from_json)) {
    if (row.source.empty() || row.source == context.options.source_key) continue;
    taught.push_back(row);
  }
  return learn_correction(taught);
}

// 0: its costs are not known.
double predict(const Correction& correction, const NamedCover& cover) {
  return alone(cover) > 0 ? correction.predict(alone(cover), cover.switches) : 0;
}

// Covers as racers: one for all that are equal (one backend alone may be the cheapest cover
// already), with what the database knows of them.
struct Entries {
  std::vector<Entry> entries;
  std::vector<size_t> entry_of;  // by cover
  std::vector<Racer> racers;
};

Entries enter_covers(const std::vector<NamedCover>& covers, const ChooseContext& context) {
  const ChooseOptions& options = context.options;
  Entries all;
  for (const NamedCover& cover : covers) {
    log::debug("{}: {}", cover.name, cover.text);
    std::string text = options.model_key + "\n" + sha256_hex(cover.text);
    auto known = std::find_if(all.entries.begin(), all.entries.end(),
                              [&](const Entry& entry) { return entry.text == text; });
    all.entry_of.push_back(static_cast<size_t>(known - all.entries.begin()));
    if (known != all.entries.end()) continue;
    std::string key = CostDatabase::key_of(text, options.context);
    const std::optional<TimingRow> row =
        find_value(context.database, "cover", key, cover_row_from_json);
    all.racers.push_back(row ? Racer{row->measured, ""} : Racer());
    std::optional<CoverCheck> check = context.checks.known(cover);
    if (check) all.racers.back().failure = refusal(*check, options.max_error);
    all.entries.push_back({all.entry_of.size() - 1, std::move(text), std::move(key),
                           row ? row->predicted : 0, std::move(check), row ? row->bytes : 0});
  }
  std::vector<size_t> order(covers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return declared_order(covers[a]) > declared_order(covers[b]);
  });
  // Of equal covers the first in order counts.
  for (size_t i = 0; i < order.size(); ++i)
    all.racers[all.entry_of[order[i]]].rank = order.size() - i;
  return all;
}

struct Contender {
  Executor executor;
  LoweredPlan lowered;
  std::vector<Tensor> inputs = {}, outputs = {};  // for timing
  double seconds = 0;  // of a run that checked it, now; 0: it was checked before
};

// As many programs at a time as hold no more constants beside one another than a quarter of the
// memory that is left.
constexpr double kMemoryAlive = 0.25;
constexpr size_t kMostAlive = 16;

}  // namespace

CoverPrediction predict_cover(const NamedCover& cover, const ChooseContext& context) {
  const double now = predict(taught_correction(context), cover);
  const double first = enter_covers({cover}, context).entries[0].predicted;
  return {first > 0 ? first : now, now};
}

size_t fastest_known(const std::vector<NamedCover>& covers, const ChooseContext& context) {
  const Entries all = enter_covers(covers, context);
  const std::optional<size_t> fastest = winner_of(all.racers);
  return fastest ? all.entries[*fastest].cover : 0;
}

namespace {

class Choice {
 public:
  Choice(const std::vector<NamedCover>& covers, const ChooseContext& context)
      : covers_(covers),
        lower_cover_(context.lower_cover),
        checks_(context.checks),
        options_(context.options),
        context_(context),
        correction_(taught_correction(context)),
        all_(enter_covers(covers, context)) {
    for (size_t i = 0; i < covers.size(); ++i) {
      Entry& entry = all_.entries[all_.entry_of[i]];
      if (entry.predicted == 0) entry.predicted = predict(correction_, covers[i]);
    }
  }

  Result<CoverChoice> run() {
    weigh();
    const std::vector<Racer> before = all_.racers;
    const bool all_known = std::all_of(before.begin(), before.end(), is_known);
    if (!all_known && options_.timing == TimingEffort::kNone) return choice_of(TRY(first_right()));
    if (!all_known && options_.frozen) {
      // Other models may have taught costs since, by which covers are found that were never timed.
      if (std::none_of(before.begin(), before.end(), [](const Racer& r) { return r.measured; }))
        return error(ErrorCode::kFrozenCosts,
                     "the covers of this model were never timed end to end");
      return choice_of(TRY(fastest_right()));
    }
    // Those that are timed are compared with the fastest, which must be right for that.
    if (std::optional<size_t> fastest = TRY(fastest_right()); all_known && !fastest)
      return choice_of(std::nullopt);
    if (!all_known) TRY(time_unknown());
    for (size_t c = 0; c < before.size(); ++c)
      if (!is_known(before[c]) && all_.racers[c].measured &&
          options_.timing != TimingEffort::kQuick)
        context_.database.put(
            "cover", all_.entries[c].key, all_.entries[c].text,
            json_text(to_json(timing_row(*all_.racers[c].measured, covers_[all_.entries[c].cover],
                                         all_.entries[c], options_.source_key))),
            options_.context);
    return choice_of(TRY(fastest_right()));
  }

 private:
  static bool is_known(const Racer& c) { return c.measured || !c.failure.empty(); }

  void note_bytes(size_t c, const Plan& plan) {
    all_.entries[c].bytes = kept_bytes(plan);
    all_.racers[c].charge =
        options_.memory_weight * 1e-6 * static_cast<double>(all_.entries[c].bytes);
  }

  // Where memory matters: what programs keep. Covers of those that keep more than the user allows
  // are left out.
  void weigh() {
    if (options_.memory_limits.empty() && options_.memory_weight == 0) return;
    for (size_t c = 0; c < all_.entries.size(); ++c) {
      const Result<LoweredPlan> lowered = lower_cover_(covers_[all_.entries[c].cover]);
      if (!lowered) continue;  // told where it is used
      note_bytes(c, *lowered->plan);
      Status fits = check_memory(*lowered->plan, options_.memory_limits);
      if (!fits.ok()) all_.racers[c].failure = lacking(std::move(fits));
    }
  }

  std::string lacking(Status status) {
    lacking_ = std::move(status);
    return lacking_.to_string();
  }

  // The fastest of those that were timed, checked with these constants.
  Result<std::optional<size_t>> fastest_right() {
    while (true) {
      const std::optional<size_t> fastest = winner_of(all_.racers);
      if (!fastest) return fastest;
      if (all_.entries[*fastest].is_checked()) return most_accurate_where_excused(*fastest);
      alive_ = TRY(ready(*fastest));
    }
  }

  // Where the reference itself moves by more than is allowed, covers differ in how much of that
  // they do: of those that were timed, the one that errs least.
  Result<std::optional<size_t>> most_accurate_where_excused(size_t fastest) {
    constexpr double kMuch = 1e-3;  // of values like it; less is of no account
    const auto excused = [&](size_t c) {
      const auto& check = all_.entries[c].check;
      return check && check->excused && check->error > kMuch;
    };
    if (!excused(fastest)) return std::optional(fastest);
    size_t best = fastest;
    for (size_t c = 0; c < all_.racers.size(); ++c) {
      const Racer& one = all_.racers[c];
      if (!one.failure.empty() || (!one.measured && options_.timing != TimingEffort::kNone))
        continue;
      if (!all_.entries[c].is_checked()) alive_ = TRY(ready(c));
      if (one.failure.empty() && all_.entries[c].check->error < all_.entries[best].check->error)
        best = c;
    }
    if (excused(best) && !std::exchange(warned_, true))
      log::warn(
          "this model makes much of the last digits: its outputs move by more than is allowed when "
          "its numbers change in their last places; the most accurate cover, {}, errs by {:.2g} of "
          "an output's values",
          covers_[all_.entries[best].cover].name, all_.entries[best].check->error);
    return std::optional(best);
  }

  Result<std::optional<size_t>> first_right() {
    for (size_t c = 0; c < all_.entries.size(); ++c) {
      if (!all_.entries[c].is_checked()) alive_ = TRY(ready(c));
      if (all_.racers[c].failure.empty()) return most_accurate_where_excused(c);
    }
    return std::optional<size_t>();
  }

  // The program of a cover, checked; null, with the failure kept, where it may not be chosen.
  Result<std::shared_ptr<Contender>> ready(size_t c) {
    Entry& entry = all_.entries[c];
    const NamedCover& cover = covers_[entry.cover];
    std::string& failure = all_.racers[c].failure;
    Result<std::shared_ptr<Contender>> made = make(c);
    bool wrong = !made;
    if (!made) {
      failure = made.status().to_string();
      // Memory that is missing now says nothing of later runs.
      if (made.status().code() == ErrorCode::kUnavailable) {
        lacking(made.status());
      } else {
        checks_.remember_failure(cover, failure);
      }
    } else if (!entry.check && !options_.lacking.empty()) {
      entry.check = CoverCheck();
      if (!std::exchange(told_unchecked_, true))
        log::warn(
            "the program is not checked: this processor lacks {}; collage verify checks it "
            "where it shall run",
            options_.lacking);
    } else if (!entry.check) {
      entry.check = TRY(checks_.check(cover, (*made)->executor));
      (*made)->seconds = checks_.reference().run_seconds();
      failure = refusal(*entry.check, options_.max_error);
      wrong = !entry.check->failure.empty();
    }
    entry.is_broken = !made;
    if (failure.empty()) return made;
    const std::string text = fmt::format("{} is left out: {}", cover.name, failure);
    // In float32 wrong is news; beyond what the user allows is none.
    if (wrong && !cover.lowered) {
      log::warn("{}", text);
    } else {
      log::info("{}", text);
    }
    return std::shared_ptr<Contender>();
  }

  Result<std::shared_ptr<Contender>> make(size_t c) {
    LoweredPlan lowered = TRY(lower_cover_(covers_[all_.entries[c].cover]));
    note_bytes(c, *lowered.plan);
    Executor executor = TRY(Executor::create(lowered.plan, options_.threads));
    return std::make_shared<Contender>(Contender{std::move(executor), std::move(lowered)});
  }

  // Inputs and outputs lie where the caller has them: what a run leaves out is not timed.
  static Status place_tensors(Contender& contender, std::span<const Tensor> inputs) {
    const LoweredPlan& lowered = contender.lowered;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const VirtualDevice& at = lowered.inputs_at[i];
      contender.inputs.push_back(
          find_device_memory(at) == nullptr ? inputs[i] : TRY(copy_to(device_text(at), inputs[i])));
    }
    contender.outputs.resize(lowered.outputs_at.size());
    for (size_t i = 0; i < contender.outputs.size(); ++i) {
      const TensorType& type = lowered.plan->outputs[i].type;
      if (const VirtualDevice& at = lowered.outputs_at[i]; find_device_memory(at) != nullptr)
        contender.outputs[i] = TRY(allocate_on(device_text(at), type.dtype, type.shape));
    }
    return {};
  }

  Status time_unknown() {
    Progress* const progress = context_.progress;
    const std::span<const Tensor> inputs = TRY(checks_.reference().timing_inputs());
    Status broken;  // of the reference
    const Prepare enter = [&](size_t c) -> Result<RunBlock> {
      Result<std::shared_ptr<Contender>> contender = ready(c);
      if (!contender) return broken = contender.status();
      if (*contender == nullptr)
        return error(ErrorCode::kVerification, "{}", all_.racers[c].failure);
      TRY(place_tensors(**contender, inputs));
      return RunBlock([this, contender = *contender](double part, std::vector<double>& samples) {
        if (options_.pace != nullptr) options_.pace->rest();
        const auto turn = turn_to_measure();
        BlockOptions block;
        if (options_.effort == Effort::kFast) {
          block.seconds_per_block /= 2;
          block.warm_ups = 1;
        }
        if (options_.timing ==
            TimingEffort::kQuick) {  // the check ran it before, and where it takes long, timed it
          block.seconds_per_block = 0.1;
          block.least_runs = 1;
          block.warm_ups = 0;
          const double checked = std::exchange(contender->seconds, 0);
          if (checked > block.seconds_per_block) {
            samples.push_back(checked);
            return Status();
          }
        }
        block.seconds_per_block *= part;
        block.runs_per_block = static_cast<int>(std::ceil(part * block.runs_per_block));
        block.gate = options_.gate;
        if (block.gate != nullptr) block.gate->await(options_.threads);
        return run_block(contender->executor, contender->inputs, contender->outputs, block,
                         samples);
      });
    };
    RaceOptions race;
    if (options_.timing == TimingEffort::kQuick) {
      race.blocks = 2;
      race.least_blocks = 1;
      race.seconds = 0.5;
      race.surely = 0.1;
      race.meetings = 0;
    }
    race.alive = std::min(
        kMostAlive, 1 + static_cast<size_t>(kMemoryAlive * static_cast<double>(memory_left()) /
                                            std::max(options_.constant_bytes, 1.0)));
    race.go_on = [&](size_t at, size_t count) {
      if (progress != nullptr) progress->update("timing covers", at, count, 0, 0);
      return broken.ok() && !is_stopped(options_.pace);
    };
    const Result<std::optional<size_t>> winner = run_race(all_.racers, enter, race);
    if (progress != nullptr) progress->finish("timing covers");
    TRY(broken);
    return winner.status();
  }

  Result<CoverChoice> choice_of(std::optional<size_t> winner) {
    if (winner) return chosen(*winner);
    CoverChoice none;
    none.failure = lacking_.ok() ? why_none_is_right() : lacking_.message();
    if (!lacking_.ok()) none.code = ErrorCode::kUnavailable;
    return none;
  }

  std::string why_none_is_right() {
    double least = std::numeric_limits<double>::infinity();
    std::string best;
    for (const Entry& entry : all_.entries) {
      const std::optional<CoverCheck> check = checks_.known(covers_[entry.cover]);
      if (!check || !check->failure.empty() || check->error >= least) continue;
      least = check->error;
      best = covers_[entry.cover].name;
    }
    if (options_.max_error > 0 && !best.empty())
      return fmt::format(
          "no cover of this model is within the largest error allowed, {}: the best, {}, errs by "
          "{:.2g} of an output's values, and a tenth is kept for other inputs",
          options_.max_error, best, least);
    return fmt::format("no cover of this model computes it right: {}",
                       all_.racers.empty() ? "" : all_.racers[0].failure);
  }

  Result<CoverChoice> chosen(size_t winner) {
    CoverChoice result;
    result.index = all_.entries[winner].cover;
    // The winner's program is still alive, if it ran: its kernels are not compiled again.
    result.lowered = TRY(lower_cover_(covers_[*result.index]));
    note_bytes(winner, *result.lowered.plan);
    for (size_t i = 0; i < covers_.size(); ++i) {
      const Racer& racer = all_.racers[all_.entry_of[i]];
      const Entry& entry = all_.entries[all_.entry_of[i]];
      result.timings.push_back(
          {entry.predicted, racer.failure.empty() ? racer.measured : std::nullopt, racer.failure,
           entry.predicted > 0 ? entry.predicted - covers_[i].plain_seconds : 0, entry.bytes});
    }
    return result;
  }

  const std::vector<NamedCover>& covers_;
  const Lower& lower_cover_;
  CoverChecks& checks_;
  const ChooseOptions& options_;
  const ChooseContext& context_;
  const Correction correction_;
  Entries all_;
  std::shared_ptr<Contender> alive_;  // the last that was checked
  bool warned_ = false;               // that the model is excused
  bool told_unchecked_ = false;
  Status lacking_;  // of a cover whose memory cannot be had
};

}  // namespace

Result<CoverChoice> require(CoverChoice choice) {
  if (!choice.index) return error(choice.code, "{}", choice.failure);
  return choice;
}

Result<CoverChoice> choose_cover(const std::vector<NamedCover>& covers,
                                 const ChooseContext& context) {
  return Choice(covers, context).run();
}

}  // namespace collage
