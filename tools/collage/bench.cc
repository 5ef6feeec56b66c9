// collage bench: latency statistics, and a fair comparison with other runtimes: blocks of runs, one
// runtime after the other, with a pause between them, so that the idle threads of one do not
// disturb the next.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "compiler/costs_in_place.h"
#include "compiler/cover_timing.h"
#include "compiler/prediction.h"
#include "cost/quiet.h"
#include "options.h"
#include "peer.h"
#include "report/layers.h"
#include "report_source.h"

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

std::string statistics_line(const std::string& name, const std::vector<double>& samples) {
  return fmt::format("{:<13} median {:9.3f} ms   p10 {:9.3f}   p90 {:9.3f}   {} runs", name,
                     1e3 * median(samples), 1e3 * percentile(samples, 0.1),
                     1e3 * percentile(samples, 0.9), samples.size());
}

// A folder that goes when this does.
struct ScratchFolder {
  std::filesystem::path path;
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "collage_bench_XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ec;
    if (!path.empty()) std::filesystem::remove_all(path, ec);
  }
};

// What --against asks for: short blocks of both programs in turns, so that a machine that changes
// its pace does so for both.
Status race(Program& program, Program& other, const std::vector<Tensor>& inputs,
            const BenchOptions& options, int threads) {
  constexpr int kRuns = 4;
  BlockOptions block;
  block.warm_ups = 1;
  block.runs_per_block = kRuns;
  block.seconds_per_block = 1e9;
  block.pause_ms = 15;
  block.quiet = &Quiet::here();
  Program* const programs[] = {&program, &other};
  std::vector<Tensor> outputs[2];
  std::vector<double> samples[2], ratios;
  const Stopwatch watch;
  for (int pair = 0; pair < 3 || watch.seconds() < 2 * options.duration; ++pair) {
    double medians[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const auto p = static_cast<size_t>((pair + turn) % 2);  // each is the first as often
      std::vector<double> now;
      block.quiet->await(threads);
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
    MachinePeaks peaks = measure_peaks(team, program.impl().report.targets);
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
  Program program = TRY(compile(model, options, &facts.compile_seconds));

  if (!options.against.empty()) {
    BenchOptions other = options;
    other.database = options.against;
    double seconds = 0;
    Program rival = TRY(compile(model, other, &seconds));
    return race(program, rival, inputs, options, facts.threads);
  }
  ScratchFolder scratch;
  if (!options.compare.empty()) TRY(save_tensors(scratch.path.string(), model.inputs(), inputs));
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::string> names;
  auto add_peer = [&](const std::string& runtime, const std::string& precision) -> Status {
    peers.push_back(TRY(Peer::start(runtime, options.model, facts.threads, precision)));
    TRY(peers.back()->set_inputs(scratch.path.string()));
    names.push_back(precision == "f32" ? runtime : runtime + " " + precision);
    facts.peers[names.back()].version = peers.back()->version();
    return {};
  };
  for (const std::string& runtime : options.compare) {
    TRY(add_peer(runtime, "f32"));
    // Whoever allows errors wants to know what it does with them, whatever its errors are.
    if (options.max_error > 0 && runtime == "openvino") TRY(add_peer(runtime, "bf16"));
  }

  std::vector<Tensor> outputs;
  BlockOptions block;
  block.warm_ups = options.warm_ups;
  block.pause_ms = kPauseMs;
  // One run tells how many fit a block; slow models run fewer.
  std::vector<double> first;
  block.runs_per_block = 1;
  TRY(run_block(*program.impl().executor, inputs, outputs, block, first));
  block.runs_per_block = std::clamp(static_cast<int>(0.6 / first[0]), 2, kBlockRuns);
  block.seconds_per_block = 1e9;
  const double block_seconds = first[0] * block.runs_per_block + kPauseMs * 1e-3;
  int blocks = options.iterations > 0
                   ? (options.iterations + block.runs_per_block - 1) / block.runs_per_block
                   : std::max(3, static_cast<int>(options.duration / block_seconds));
  std::optional<CostsInPlace> fresh;
  if (options.fresh_costs)
    fresh.emplace(*program.impl().executor, facts.threads, program.impl().report.cache_state,
                  options.patience);
  Quiet& quiet = Quiet::here();
  if (peers.empty()) block.quiet = &quiet;
  for (int kept = 0; kept < blocks;) {
    // Inside the block of a peer nobody looks, so with peers a turn of all counts where it was
    // quiet before and after each block.
    std::vector<std::vector<double>> turn(1 + peers.size());
    bool was_quiet = true;
    double seconds = 0;
    for (size_t i = 0; i < turn.size(); ++i) {
      quiet.await(facts.threads);
      const Stopwatch watch;
      if (i == 0) {
        TRY(run_block(*program.impl().executor, inputs, outputs, block, turn[i]));
      } else {
        turn[i] = TRY(peers[i - 1]->run(options.warm_ups, block.runs_per_block));
        std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
      }
      seconds += watch.seconds();
      was_quiet = was_quiet && (peers.empty() || Quiet::is_now(facts.threads));
    }
    if (!peers.empty() && !quiet.counts(seconds, was_quiet)) continue;
    ++kept;
    for (int look = 0; fresh && look < kFreshLooks; ++look) TRY(fresh->look(inputs));
    for (size_t i = 0; i < turn.size(); ++i) {
      std::vector<double>& all = i == 0 ? facts.samples : facts.peers[names[i - 1]].samples;
      all.insert(all.end(), turn[i].begin(), turn[i].end());
    }
  }
  // What other models taught is about costs in the database.
  if (fresh)
    facts.fresh_predicted_seconds =
        Correction().predict({fresh->seconds(), program.impl().report.switches});
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, program.outputs(), outputs));
  if (!options.json.empty()) TRY(add_timeline(program, inputs, facts));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  fmt::print("{}\n{}\n", summary(model, program.impl().report, facts),
             statistics_line("collage", facts.samples));
  double best = 0;
  for (const std::string& name : names) {
    const std::vector<double>& samples = facts.peers[name].samples;
    fmt::print("{}\n", statistics_line(name, samples));
    best = best == 0 ? median(samples) : std::min(best, median(samples));
  }
  if (best > 0)
    fmt::print("speed-up over the faster of them: {:.2f}x\n", best / median(facts.samples));
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
                    "time the chosen kernels alone again, in turns with the blocks, and predict "
                    "from that too: is the prediction wrong, or has the machine changed its pace?");
  command->add_option("--profile", options->profile,
                      "write a Chrome trace of one run to this file");
  for (const char* other : {"--compare", "--iterations", "--layers", "--roofline", "--profile",
                            "--fresh-costs", "--json", "--save-outputs"})
    against->excludes(command->get_option(other));
  return {command, [options] { return bench(*options); }};
}

}  // namespace collage::tool
