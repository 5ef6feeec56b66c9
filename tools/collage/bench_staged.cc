// Latency of a model that runs in stages, beside other runtimes: blocks of whole runs in turns. A
// run is what its caller waits for, the host's operators and loops between stages included.

#include <fmt/format.h>

#include <thread>

#include "artifact.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "bench.h"
#include "bench_text.h"
#include "verify/comparison.h"

namespace collage::tool {

namespace {

constexpr int kStagedRuns = 20;
constexpr int kStagedPauseMs = 50;
constexpr int kStagedTurns = 10;  // at least

Result<std::vector<double>> timed_block(StagedProgram& staged, const std::vector<Tensor>& inputs,
                                        int warm_ups, int runs, std::vector<Tensor>& outputs) {
  std::vector<double> seconds;
  for (int i = -warm_ups; i < runs; ++i) {
    const Stopwatch watch;
    outputs = TRY(staged.program.run(inputs));
    if (i >= 0) seconds.push_back(watch.seconds());
  }
  return seconds;
}

Status check_flags(const BenchOptions& options) {
  if (options.layers || options.streams > 0)
    return usage_error("{}: runs in stages, which --layers and --streams know nothing of",
                       options.model);
  return {};
}

}  // namespace

Status bench_staged(StagedProgram& staged, const BenchOptions& options) {
  TRY(check_flags(options));
  const std::vector<Tensor> inputs = staged.inputs();
  std::vector<Tensor> outputs;
  const double compiling = TRY(timed_block(staged, inputs, 0, 1, outputs))[0];
  const double once = TRY(timed_block(staged, inputs, 0, 1, outputs))[0];
  RunFacts facts;
  facts.threads = thread_count(options);
  ModelReference held_to;  // stages have no function that tells what roundings move
  held_to.of_peers = model_tolerance(options.max_error);
  Rivals rivals = TRY(
      Rivals::start(options.model,
                    TRY(file_inputs(options.model, staged.input_infos(), inputs,
                                    TRY(load_options(options)).constants)),
                    {options.compare, std::move(held_to), {}, facts.threads, options.max_error}));
  const double wanted = options.duration / once;
  const int runs = std::clamp(static_cast<int>(wanted / kStagedTurns), 2, kStagedRuns);
  const int turns = std::max(kStagedTurns, static_cast<int>(wanted / runs));
  NoiseGate gate;
  gate.allow(kSecondsForQuiet);
  std::vector<std::vector<double>> medians(1 + rivals.size());
  for (int turn = 0; turn < turns; ++turn)
    for (size_t k = 0; k < medians.size(); ++k) {  // there and back: none always follows the same
      const size_t i = turn % 2 == 0 ? k : medians.size() - 1 - k;
      gate.await(facts.threads);
      const std::vector<double> block =
          i == 0 ? TRY(timed_block(staged, inputs, kWarmUps, runs, outputs))
                 : TRY(rivals.run(i - 1, kWarmUps, runs));
      std::this_thread::sleep_for(std::chrono::milliseconds(kStagedPauseMs));
      std::vector<double>& all = i == 0 ? facts.samples : facts.peers[rivals.name(i - 1)].samples;
      all.insert(all.end(), block.begin(), block.end());
      medians[i].push_back(median(block));
    }
  for (size_t i = 0; i < rivals.size(); ++i)
    TRY(rivals.judge(i, medians[0], medians[1 + i], outputs, facts.peers[rivals.name(i)]));
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, infos_of(staged.program.outputs(), outputs), outputs));
  fmt::print("{}: runs in stages; the first run {}, {:.1f} s\n{}\n", options.model,
             runs_artifact(options) ? "loaded them" : "compiled", compiling,
             statistics_line("collage", facts.samples));
  for (size_t i = 0; i < rivals.size(); ++i)
    fmt::print("{}\n", statistics_line(rivals.name(i), facts.peers.at(rivals.name(i)).samples));
  if (!rivals.none()) fmt::print("{}", rivals_text(facts, rivals));
  return rivals.agree();
}

}  // namespace collage::tool
