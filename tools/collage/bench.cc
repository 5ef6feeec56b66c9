// collage bench: latency statistics, and a fair comparison with other runtimes: blocks of runs, one
// runtime after the other, with a pause between them, so that the idle threads of one do not
// disturb the next.

#include <fmt/format.h>

#include <thread>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "machine/noise_gate.h"
#include "options.h"
#include "report/layers.h"
#include "report_source.h"
#include "rivals.h"
#include "select/cover_timing.h"
#include "select/in_situ_costs.h"
#include "select/prediction.h"

namespace collage::tool {

namespace {

struct BenchOptions : SharedOptions {
  std::vector<std::string> compare;
  int iterations = 0;   // of every runtime; 0: as many as fit the duration
  double duration = 3;  // seconds a runtime
  int warm_ups = 2;     // before each block
  bool layers = false, roofline = false;
  std::string profile;  // where the Chrome trace goes
  std::string against;  // another cost database
  bool fresh_costs = false;
};

constexpr int kBlockRuns = 20;
constexpr int kPauseMs = 50;
constexpr int kProfiledRuns = 15;
constexpr int kFreshLooks = 2;  // after each block
constexpr int kTurns = 10;      // beside other runtimes, at least: what an interval is made of

std::string statistics_line(const std::string& name, const std::vector<double>& samples) {
  return fmt::format("{:<13} median {:9.3f} ms   p10 {:9.3f}   p90 {:9.3f}   {} runs", name,
                     1e3 * median(samples), 1e3 * percentile(samples, 0.1),
                     1e3 * percentile(samples, 0.9), samples.size());
}

NoiseGate gate_of(const Program& program, const BenchOptions& options) {
  NoiseGate gate;
  gate.allow(options.patience);
  gate.know(program.impl().report.usual_cores);
  return gate;
}

// What --against asks for: short blocks of both programs in turns, so that a machine that changes
// its speed does so for both.
Status race(Program& program, Program& other, const std::vector<Tensor>& inputs,
            const BenchOptions& options, int threads) {
  constexpr int kRuns = 4;
  BlockOptions block;
  block.warm_ups = 1;
  block.runs_per_block = kRuns;
  block.seconds_per_block = 1e9;
  block.pause_ms = 15;
  NoiseGate gate = gate_of(program, options);
  block.gate = &gate;
  Program* const programs[] = {&program, &other};
  std::vector<Tensor> outputs[2];
  std::vector<double> samples[2], ratios;
  const Stopwatch watch;
  for (int pair = 0; pair < 3 || watch.seconds() < 2 * options.duration; ++pair) {
    double medians[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const auto p = static_cast<size_t>((pair + turn) % 2);  // each is the first as often
      std::vector<double> now;
      gate.await(threads);
      TRY(run_block(*programs[p]->impl().executor, inputs, outputs[p], block, now));
      medians[p] = median(now);
      samples[p].insert(samples[p].end(), now.begin(), now.end());
    }
    ratios.push_back(medians[1] / medians[0]);
  }
  fmt::print(
      "{}\n{}\nthe other takes {:+.1f}% (median of {} pairs of blocks; p10 {:+.1f}%, p90 "
      "{:+.1f}%)\n",
      statistics_line("collage", samples[0]), statistics_line("the other", samples[1]),
      100 * (median(ratios) - 1), ratios.size(), 100 * (percentile(ratios, 0.1) - 1),
      100 * (percentile(ratios, 0.9) - 1));
  return {};
}

// What --layers, --roofline and --profile ask for.
Status show_layers(Program& program, const std::vector<Tensor>& inputs,
                   const BenchOptions& options) {
  Profile profile = TRY(profile_layers(program.impl(), inputs, kProfiledRuns));
  if (!options.profile.empty()) TRY(write_json(options.profile, chrome_trace(profile)));
  if (options.roofline) {
    ThreadTeam team(thread_count(options));
    MachinePeaks peaks = measure_peaks(team);
    raise_memory_peak(peaks, program.impl().report.memory_bytes_per_second);
    fmt::print("{}", layers_table(profile, &peaks));
  } else if (options.layers) {
    fmt::print("{}", layers_table(profile));
  }
  return {};
}

Status bench(const BenchOptions& options) {
  TRY(check_writable_file("--profile", options.profile));
  Model model = TRY(load(options));
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds, inputs));

  if (!options.against.empty()) {
    BenchOptions other = options;
    other.database = options.against;
    double seconds = 0;
    Program rival = TRY(compile(model, other, &seconds, inputs));
    return race(program, rival, inputs, options, facts.threads);
  }
  Rivals rivals = TRY(Rivals::start(options.compare, options.model, model, inputs, facts.threads,
                                    options.max_error));

  std::vector<Tensor> outputs;
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
    peer.difference = TRY(rivals.difference(i, outputs, options.max_error));
  }
  if (fresh)
    facts.fresh_in_situ_seconds =
        Correction().predict({fresh->seconds(), program.impl().report.switches});
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, program.outputs(), outputs));
  if (!options.json.empty()) TRY(add_timeline(program, inputs, facts));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  fmt::print("{}\n{}\n", summary(model, program.impl().report, facts),
             statistics_line("collage", facts.samples));
  for (size_t i = 0; i < rivals.size(); ++i)
    fmt::print("{}\n", statistics_line(rivals.name(i), facts.peers[rivals.name(i)].samples));
  if (!rivals.none()) fmt::print("{}", rivals_text(facts, rivals));
  if (options.layers || options.roofline || !options.profile.empty())
    TRY(show_layers(program, inputs, options));
  return {};
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "latency statistics, and a comparison with other runtimes");
  add_compile_options(*command, *options);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  add_output_option(*command, *options);
  command
      ->add_option("--compare", options->compare,
                   "onnxruntime, openvino: run these too, interleaved, in processes of their own")
      ->delimiter(',')
      ->check(CLI::IsMember({"onnxruntime", "openvino"}));
  CLI::Option* against =
      command
          ->add_option(
              "--against", options->against,
              "a second cost database: the program it gives runs in turns with this one's, and "
              "nothing else is done")
          ->check(CLI::ExistingFile);
  command->add_option("--iterations", options->iterations, "timed runs of each runtime")
      ->check(positive_number());
  command
      ->add_option("--duration", options->duration,
                   "seconds for the timed runs of each runtime, pauses included (default 3)")
      ->check(positive_number());
  command->add_option("--warmup", options->warm_ups, "untimed runs before each block")
      ->check(CLI::Range(0, 1000000));
  command->add_flag("--layers", options->layers, "the time of every kernel inside whole runs");
  command->add_flag("--roofline", options->roofline,
                    "the same against the measured peaks of this machine");
  command->add_flag("--fresh-costs", options->fresh_costs,
                    "time the chosen kernels inside the plan, in turns with the blocks, and add "
                    "them up: is the prediction wrong, or has the machine changed since?");
  command->add_option("--profile", options->profile,
                      "write a Chrome trace of one run to this file");
  for (const char* other : {"--compare", "--iterations", "--layers", "--roofline", "--profile",
                            "--fresh-costs", "--json", "--save-outputs"})
    against->excludes(command->get_option(other));
  return {command, [options] { return bench(*options); }};
}

}  // namespace collage::tool
