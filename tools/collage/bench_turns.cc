// Latency of single inferences, beside other runtimes and the best single backend's program: blocks
// of runs, one after the other, with a pause between them, so that the idle threads of one do not
// disturb the next.

#include <algorithm>
#include <functional>
#include <thread>

#include "base/resident_memory.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "bench.h"
#include "choose/cover_timing.h"
#include "report/model_reference.h"

namespace collage::tool {

namespace {

constexpr int kBlockRuns = 20;
constexpr int kPauseMs = 50;
constexpr int kTurns = 10;  // beside other runtimes, at least: what an interval is made of

// Compiled as the model is.
Result<OwnPartition> own_partition(const std::string& file, const Model& model,
                                   const BenchOptions& options) {
  SharedOptions own = options;
  own.model = file;
  own.json.clear();
  own.save_outputs.clear();
  OwnPartition result{file, {}, {}};
  std::vector<TensorInfo> infos;
  if (is_artifact(file)) {
    SharedOptions as_it_is;
    as_it_is.model = file;
    as_it_is.required_signature = options.required_signature;
    result.opened.emplace(TRY(open_artifact(as_it_is, EmbeddedWeights::kUnread)));
    infos = result.opened->model.inputs();
  } else {
    const Model other = TRY(load(own));
    double seconds = 0;
    infos = other.inputs();
    result.compiled.emplace(TRY(compile(other, own, &seconds)));
  }
  const std::vector<TensorInfo>& wanted = model.inputs();
  if (!std::equal(infos.begin(), infos.end(), wanted.begin(), wanted.end(),
                  [](const TensorInfo& a, const TensorInfo& b) {
                    return a.shape == b.shape && a.dtype == b.dtype;
                  }))
    return usage_error("--compare {}: its inputs are not those of {}", file, options.model);
  return result;
}

Status check_outputs(const OwnPartition& own, const TimedModel& timed,
                     const BenchOptions& options) {
  const Tolerance tolerance = model_reference(timed.model, options.max_error).of_peers;
  if (own.outputs.size() != timed.outputs.size())
    return usage_error("--compare {}: it has other outputs than {}", own.file, options.model);
  for (size_t i = 0; i < own.outputs.size(); ++i) {
    const Difference one = compare_tensors(timed.outputs[i], own.outputs[i], tolerance);
    if (!one.within)
      return error(ErrorCode::kVerification, "--compare {}: output {} {}", own.file, i, one.reason);
  }
  return {};
}

Status run_turns(TimedModel& timed, const BenchOptions& options) {
  Program& program = timed.program;
  const std::vector<Tensor>& inputs = timed.inputs;
  Rivals& rivals = timed.rivals;
  RunFacts& facts = timed.facts;
  BlockOptions block;
  block.warm_ups = kWarmUps;
  block.pause_ms = kPauseMs;
  // One run tells how many fit a block; slow models run fewer.
  std::vector<double> first;
  block.runs_per_block = 1;
  TRY(run_block(*program.impl().executor, inputs, timed.outputs, block, first));
  const bool compares = !rivals.none() || !timed.partitions.empty();
  const int least_blocks = compares ? kTurns : 3;
  int fitting = static_cast<int>(0.6 / first[0]);
  if (compares) fitting = std::min(fitting, static_cast<int>(options.duration / kTurns / first[0]));
  block.runs_per_block = std::clamp(fitting, 2, kBlockRuns);
  block.seconds_per_block = 1e9;
  const double block_seconds = first[0] * block.runs_per_block + kPauseMs * 1e-3;
  const int blocks = std::max(least_blocks, static_cast<int>(options.duration / block_seconds));
  NoiseGate gate = gate_of(program);
  if (rivals.none()) block.gate = &gate;
  // Who takes turns, and what came of it; this program first.
  struct Entrant {
    std::function<Status(std::vector<double>&)> run;
    std::vector<double>* samples;
    std::vector<double> medians = {};  // of its blocks
  };
  const auto runs_of = [&](Executor& executor, std::vector<Tensor>& results) {
    return [&](std::vector<double>& samples) {
      return run_block(executor, inputs, results, block, samples);
    };
  };
  std::vector<Entrant> entrants = {
      {runs_of(*program.impl().executor, timed.outputs), &facts.samples}};
  std::vector<Tensor> alone_outputs;
  if (timed.alone) {
    facts.alone.emplace().name = program.impl().report.best_single_backend;
    entrants.push_back({runs_of(*timed.alone, alone_outputs), &facts.alone->samples});
  }
  const size_t first_partition = entrants.size();
  facts.partitions.resize(timed.partitions.size());
  for (size_t i = 0; i < timed.partitions.size(); ++i) {
    OwnPartition& own = timed.partitions[i];
    facts.partitions[i].name = own.file;
    entrants.push_back({runs_of(own.executor(), own.outputs), &facts.partitions[i].samples});
  }
  const size_t first_rival = entrants.size();
  for (size_t i = 0; i < rivals.size(); ++i)
    entrants.push_back({[&, i](std::vector<double>& samples) -> Status {
                          samples = TRY(rivals.run(i, kWarmUps, block.runs_per_block));
                          std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
                          return {};
                        },
                        &facts.peers[rivals.name(i)].samples});
  for (int kept = 0; kept < blocks;) {
    // Inside the block of a peer nobody looks, so with peers a turn of all counts where it was
    // quiet before and after each block.
    std::vector<std::vector<double>> turn(entrants.size());
    bool was_quiet = true;
    double seconds = 0;
    for (size_t k = 0; k < turn.size(); ++k) {  // there and back: none always follows the same
      const size_t i = kept % 2 == 0 ? k : turn.size() - 1 - k;
      gate.await(facts.threads);
      const Stopwatch watch;
      TRY(entrants[i].run(turn[i]));
      seconds += watch.seconds();
      was_quiet = was_quiet && (rivals.none() || gate.is_quiet_now(facts.threads));
    }
    if (!rivals.none() && !gate.counts(seconds, was_quiet)) continue;
    ++kept;
    for (size_t i = 0; i < turn.size(); ++i) {
      Entrant& entrant = entrants[i];
      entrant.samples->insert(entrant.samples->end(), turn[i].begin(), turn[i].end());
      entrant.medians.push_back(median(turn[i]));
    }
  }
  if (facts.alone) facts.alone->speed_up = speed_up(entrants[0].medians, entrants[1].medians);
  for (size_t i = 0; i < timed.partitions.size(); ++i) {
    TRY(check_outputs(timed.partitions[i], timed, options));
    facts.partitions[i].speed_up =
        speed_up(entrants[0].medians, entrants[first_partition + i].medians);
  }
  for (size_t i = 0; i < rivals.size(); ++i)
    TRY(rivals.judge(i, entrants[0].medians, entrants[first_rival + i].medians, timed.outputs,
                     facts.peers[rivals.name(i)]));
  return {};
}

}  // namespace

NoiseGate gate_of(const Program& program) {
  NoiseGate gate;
  gate.allow(kSecondsForQuiet);
  gate.know(program.impl().report.usual_cores);
  return gate;
}

Result<TimedModel> time_in_turns(Model model, const BenchOptions& options) {
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds, inputs));
  std::optional<Executor> alone;
  if (!options.compare.empty() && !program.impl().report.best_single_backend.empty())
    alone = TRY(compile_alone(model, TRY(program_options(options)),
                              program.impl().report.best_single_backend));
  Rivals rivals = TRY(Rivals::start(
      options.model,
      TRY(file_inputs(options.model, model.inputs(), inputs, TRY(load_options(options)).constants)),
      {options.compare, model_reference(model, options.max_error), inputs, facts.threads,
       options.max_error}));
  std::vector<OwnPartition> partitions;
  for (const std::string& file : options.partitions)
    partitions.push_back(TRY(own_partition(file, model, options)));
  TimedModel timed{
      std::move(model),  std::move(program), std::move(alone),     std::move(inputs), {},
      std::move(rivals), std::move(facts),   std::move(partitions)};
  reset_peak_resident_bytes();
  TRY(run_turns(timed, options));
  timed.facts.resident_bytes = peak_resident_bytes();
  return timed;
}

}  // namespace collage::tool
