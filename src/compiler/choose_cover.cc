#include "compiler/choose_cover.h"

#include <algorithm>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "compiler/cover_timing.h"
#include "cost/comparison.h"
#include "cost/synthetic.h"
#include "ops/interpreter.h"

namespace collage {

using nlohmann::json;

namespace {

json timed_to_json(const std::vector<TimedCover>& timed, size_t winner) {
  json list = json::array();
  for (const TimedCover& cover : timed) {
    json entry = {{"failure", cover.failure}};
    if (cover.measured) entry["cost"] = to_json(Cost(*cover.measured));
    list.push_back(std::move(entry));
  }
  return {{"winner", winner}, {"covers", list}};
}

// Fills `timed` and `winner` from a cached row; false when the row does not fit.
bool timed_from_json(const json& row, std::vector<TimedCover>& timed, size_t& winner) {
  if (!row.is_object() || !row.contains("winner") || !row.contains("covers") ||
      row["covers"].size() != timed.size())
    return false;
  winner = row["winner"].get<size_t>();
  if (winner >= timed.size()) return false;
  for (size_t i = 0; i < timed.size(); ++i) {
    const json& entry = row["covers"][i];
    timed[i].failure = entry.value("failure", "");
    if (!entry.contains("cost")) continue;
    Result<Cost> cost = cost_from_json(entry["cost"]);
    if (!cost || measured(*cost) == nullptr) return false;
    timed[i].measured = *measured(*cost);
  }
  return true;
}

// What a cover's outputs must look like: the reference's, on seeded inputs, computed once.
class Judge {
 public:
  static Result<Judge> create(const DataflowGraph& graph) {
    Judge judge;
    judge.inputs_ = TRY(synthetic_inputs(graph.function(), 11));
    judge.expected_ = TRY(interpret(graph.function(), judge.inputs_));
    return judge;
  }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  Status check(Executor& executor) const {
    std::vector<Tensor> outputs(expected_.size());
    TRY(executor.run(inputs_, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      Difference difference = compare_tensors(outputs[i], expected_[i], model_tolerance());
      if (!difference.within)
        return error(ErrorCode::kVerification, "output {}: {}", i, difference.reason);
    }
    return {};
  }

 private:
  std::vector<Tensor> inputs_, expected_;
};

struct Contender {
  size_t index;
  LoweredPlan lowered;
  Executor executor;
};

Result<Contender> prepare(size_t index, const NamedCover& cover, const Lower& lower_cover,
                          const Judge& judge, int threads) {
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  TRY(judge.check(executor));
  return Contender{index, std::move(lowered), std::move(executor)};
}

}  // namespace

Result<ChosenCover> choose_cover(const DataflowGraph& graph, const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, CostDatabase& database,
                                 const ChooseOptions& options, Progress* progress) {
  ChosenCover chosen;
  std::string text = options.model_key;
  std::vector<std::string> cover_texts;
  for (const NamedCover& cover : covers) {
    chosen.timed.push_back(
        {cover.name, cover.single_backend, cover.predicted_seconds, std::nullopt, "", false});
    cover_texts.push_back(cover_text(cover, candidates));
    log::debug("{}: {}", cover.name, cover_texts.back());
    text += "\n" + cover.name + ": " + cover_texts.back();
  }
  std::string key = sha256_hex(text);
  if (std::optional<std::string> row = database.find("cover", key);
      row && timed_from_json(parse_json(*row), chosen.timed, chosen.index)) {
    chosen.timed[chosen.index].chosen = true;
    chosen.lowered = TRY(lower_cover(covers[chosen.index]));
    return chosen;
  }
  if (options.untimed) {
    chosen.timed[0].chosen = true;
    chosen.lowered = TRY(lower_cover(covers[0]));
    return chosen;
  }
  if (options.frozen)
    return error(ErrorCode::kFrozenCosts, "the covers of this model were never timed end to end");

  Judge judge = TRY(Judge::create(graph));
  std::optional<Contender> champion;
  for (size_t i = 0; i < covers.size(); ++i) {
    if (interrupted() && champion) break;  // the first that computes right is good enough
    if (progress != nullptr) progress->update("timing covers", i, covers.size(), 0, 0);
    // One backend alone may be the cheapest cover already.
    size_t twin = static_cast<size_t>(
        std::find(cover_texts.begin(), cover_texts.end(), cover_texts[i]) - cover_texts.begin());
    if (twin < i) {
      chosen.timed[i].measured = chosen.timed[twin].measured;
      chosen.timed[i].failure = chosen.timed[twin].failure;
      continue;
    }
    Result<Contender> challenger = prepare(i, covers[i], lower_cover, judge, options.threads);
    if (!challenger) {
      chosen.timed[i].failure = challenger.status().to_string();
      log::warn("{} is left out: {}", covers[i].name, chosen.timed[i].failure);
      continue;
    }
    if (!champion) {
      chosen.timed[i].measured = TRY(time_alone(challenger->executor, judge.inputs()));
      champion = std::move(challenger).value();
      continue;
    }
    CoverTimings timings =
        TRY(time_against(champion->executor, challenger->executor, judge.inputs()));
    // Rows are compared with one another: scale the newcomer by what the champion took beside it.
    double drift = chosen.timed[champion->index].measured->median / timings.champion.median;
    Measured scaled = timings.challenger;
    for (double* value : {&scaled.median, &scaled.p10, &scaled.p90}) *value *= drift;
    chosen.timed[i].measured = scaled;
    if (timings.challenger.median < timings.champion.median)
      champion = std::move(challenger).value();
  }
  if (progress != nullptr) progress->finish("timing covers");
  if (!champion)
    return error(ErrorCode::kVerification, "no cover of this model computes it right: {}",
                 chosen.timed[0].failure);
  chosen.index = champion->index;
  chosen.timed[chosen.index].chosen = true;
  chosen.lowered = std::move(champion->lowered);
  if (interrupted()) return chosen;
  database.put("cover", key, text.substr(0, 2000),
               timed_to_json(chosen.timed, chosen.index).dump());
  return chosen;
}

}  // namespace collage
