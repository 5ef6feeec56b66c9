// Latency of single inferences, beside other runtimes: blocks of runs, one runtime after the other,
// with a pause between them, so that the idle threads of one do not disturb the next.

#include <thread>

#include "base/resident_memory.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "bench.h"
#include "report/model_reference.h"
#include "select/cover_timing.h"
#include "select/in_situ_costs.h"
#include "select/prediction.h"

namespace collage::tool {

namespace {

constexpr int kBlockRuns = 20;
constexpr int kPauseMs = 50;
constexpr int kFreshLooks = 2;  // after each block
constexpr int kTurns = 10;      // beside other runtimes, at least: what an interval is made of

Status run_turns(TimedModel& timed, const BenchOptions& options) {
  auto& [model, program, inputs, outputs, rivals, facts] = timed;
  BlockOptions block;
  block.warm_ups = options.warm_ups;
  block.pause_ms = kPauseMs;
  // One run tells how many fit a block; slow models run fewer.
  std::vector<double> first;
  block.runs_per_block = 1;
  TRY(run_block(*program.impl().executor, inputs, outputs, block, first));
  const int least_blocks = rivals.none() ? 3 : kTurns;
  int fitting = static_cast<int>(0.6 / first[0]);
  if (!rivals.none())
    fitting = std::min(fitting, options.iterations > 0
                                    ? options.iterations / kTurns
                                    : static_cast<int>(options.duration / kTurns / first[0]));
  block.runs_per_block = std::clamp(fitting, 2, kBlockRuns);
  block.seconds_per_block = 1e9;
  const double block_seconds = first[0] * block.runs_per_block + kPauseMs * 1e-3;
  int blocks = options.iterations > 0
                   ? (options.iterations + block.runs_per_block - 1) / block.runs_per_block
                   : std::max(least_blocks, static_cast<int>(options.duration / block_seconds));
  NoiseGate gate = gate_of(program, options);
  std::optional<InSituCosts> fresh;
  if (options.fresh_costs)
    fresh.emplace(*program.impl().executor, facts.threads, program.impl().report.cache_state, gate);
  if (rivals.none()) block.gate = &gate;
  std::vector<std::vector<double>> medians(1 + rivals.size());  // of each one's blocks
  for (int kept = 0; kept < blocks;) {
    // Inside the block of a peer nobody looks, so with peers a turn of all counts where it was
    // quiet before and after each block.
    std::vector<std::vector<double>> turn(1 + rivals.size());
    bool was_quiet = true;
    double seconds = 0;
    for (size_t k = 0; k < turn.size(); ++k) {  // there and back: none always follows the same
      const size_t i = kept % 2 == 0 ? k : turn.size() - 1 - k;
      gate.await(facts.threads);
      const Stopwatch watch;
      if (i == 0) {
        TRY(run_block(*program.impl().executor, inputs, outputs, block, turn[i]));
      } else {
        turn[i] = TRY(rivals.run(i - 1, options.warm_ups, block.runs_per_block));
        std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
      }
      seconds += watch.seconds();
      was_quiet = was_quiet && (rivals.none() || gate.is_quiet_now(facts.threads));
    }
    if (!rivals.none() && !gate.counts(seconds, was_quiet)) continue;
    ++kept;
    for (int look = 0; fresh && look < kFreshLooks; ++look) TRY(fresh->look(inputs));
    for (size_t i = 0; i < turn.size(); ++i) {
      std::vector<double>& all = i == 0 ? facts.samples : facts.peers[rivals.name(i - 1)].samples;
      all.insert(all.end(), turn[i].begin(), turn[i].end());
      medians[i].push_back(median(turn[i]));
    }
  }
  for (size_t i = 0; i < rivals.size(); ++i) {
    RunFacts::Peer& peer = facts.peers[rivals.name(i)];
    peer.version = rivals.version(i);
    peer.speed_up = speed_up(medians[0], medians[1 + i]);
    peer.difference = TRY(rivals.difference(i, outputs));
  }
  if (fresh)
    facts.fresh_in_situ_seconds =
        Correction().predict({fresh->seconds(), program.impl().report.switches});
  return {};
}

}  // namespace

NoiseGate gate_of(const Program& program, const BenchOptions& options) {
  NoiseGate gate;
  gate.allow(options.patience);
  gate.know(program.impl().report.usual_cores);
  return gate;
}

Result<TimedModel> time_in_turns(Model model, const BenchOptions& options) {
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds, inputs));
  Rivals rivals = TRY(Rivals::start(
      options.compare, options.model,
      TRY(file_inputs(options.model, model.inputs(), inputs, TRY(load_options(options)).constants)),
      model_reference(model, options.max_error).tolerance, facts.threads, options.max_error, 0));
  TimedModel timed{std::move(model),  std::move(program), std::move(inputs), {},
                   std::move(rivals), std::move(facts)};
  reset_peak_resident_bytes();
  TRY(run_turns(timed, options));
  timed.facts.resident_bytes = peak_resident_bytes();
  return timed;
}

}  // namespace collage::tool
