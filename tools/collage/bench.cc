// collage bench: latency statistics, throughput of several streams, a batch size after the other,
// and a fair comparison with other runtimes.

#include "bench.h"

#include <fmt/format.h>

#include <optional>

#include "artifact.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "bench_text.h"
#include "benchmark_file.h"
#include "report/layers.h"
#include "report_source.h"
#include "select/cover_timing.h"

namespace collage::tool {

namespace {

constexpr int kProfiledRuns = 15;

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

Status race_against(const BenchOptions& options) {
  Model model = TRY(load(options));
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  double seconds = 0;
  Program program = TRY(compile(model, options, &seconds, inputs));
  BenchOptions other = options;
  other.database = options.against;
  Program rival = TRY(compile(model, other, &seconds, inputs));
  return race(program, rival, inputs, options, thread_count(options));
}

// What is known of one model in the form of Google Benchmark.
std::vector<BenchmarkRow> rows_of(const TimedModel& timed) {
  const std::string model = timed.model.impl().path.stem().string();
  std::vector<BenchmarkRow> rows;
  const RunFacts& facts = timed.facts;
  const auto add = [&](const std::string& runtime, const std::vector<double>& samples,
                       double per_second) {
    rows.push_back({model + "/" + runtime, samples, facts.threads, per_second, 0});
    if (facts.batch > 0) rows.back().name += fmt::format("/batch:{}", facts.batch);
    if (facts.throughput) rows.back().name += fmt::format("/streams:{}", facts.throughput->streams);
  };
  const double batch = static_cast<double>(std::max<int64_t>(facts.batch, 1));
  if (facts.throughput) {
    add("collage", facts.throughput->latencies, median(facts.throughput->per_second));
    for (const auto& [name, peer] : facts.throughput->peers) add(name, {}, median(peer.per_second));
  } else {
    add("collage", facts.samples, batch / median(facts.samples));
    for (const auto& [name, peer] : facts.peers)
      add(name, peer.samples, batch / median(peer.samples));
  }
  rows.front().peak_bytes = facts.resident_bytes;
  return rows;
}

// The report, outputs and results, wherever they shall go.
Status write_results(TimedModel& timed, const BenchOptions& options,
                     const std::vector<BenchmarkRow>& rows) {
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, timed.program.outputs(), timed.outputs));
  if (!options.json.empty()) {
    const size_t peak = timed.facts.resident_bytes;  // of what was timed
    TRY(add_timeline(timed.program, timed.inputs, timed.facts));
    timed.facts.resident_bytes = peak;
    TRY(write_json(options.json,
                   report_json(timed.model, timed.program.impl().report, timed.facts)));
  }
  return write_benchmark_file(options.benchmark, rows);
}

Status bench_batches(const BenchOptions& options) {
  std::optional<TimedModel> timed;
  std::vector<BenchmarkRow> rows;
  std::vector<RunFacts::Batch> batches;
  Status agree;
  for (int64_t batch : options.batches) {
    timed.reset();  // one program at a time is in memory
    const BenchOptions one = TRY(with_batch(options, batch));
    timed.emplace(TRY(time_in_turns(TRY(load(one)), one)));
    timed->facts.batch = batch;
    fmt::print("{}{}", batches.empty() ? batch_heading() : "", batch_lines(timed->facts));
    batches.push_back({batch, timed->facts.samples});
    std::fflush(stdout);
    for (BenchmarkRow& row : rows_of(*timed)) rows.push_back(std::move(row));
    if (agree.ok()) agree = timed->rivals.agree();
  }
  timed->facts.batches = std::move(batches);
  TRY(write_results(*timed, options, rows));
  return agree;
}

Status bench(const BenchOptions& options) {
  if (runs_artifact(options)) {
    if (!options.compare.empty() || !options.against.empty() || options.layers ||
        options.roofline || options.fresh_costs || !options.profile.empty() ||
        options.streams > 0 || !options.batches.empty() || !options.benchmark.empty())
      return usage_error("{}: is timed as it is: other flags of bench want --recompile",
                         options.model);
    if (std::optional<StagedProgram> staged = TRY(staged_artifact(options)))
      return bench_staged(*staged, options);
    return bench_artifact(options, options.duration, options.iterations, options.warm_ups);
  }
  if (is_artifact(options.model) && (!options.compare.empty() || !options.batches.empty()))
    return usage_error("{}: --compare and --batch want the model's own file", options.model);
  TRY(check_writable_file("--profile", options.profile));
  TRY(check_writable_file("--benchmark-out", options.benchmark));
  if (!options.against.empty()) return race_against(options);
  if (!options.batches.empty()) return bench_batches(options);
  Result<Model> loaded = load(options);
  if (!loaded) {
    StagedProgram staged = TRY(in_stages(options, loaded.status()));
    return bench_staged(staged, options);
  }
  Model model = TRY(std::move(loaded));
  TimedModel timed = TRY(options.streams > 0 ? time_streams(std::move(model), options)
                                             : time_in_turns(std::move(model), options));
  TRY(write_results(timed, options, rows_of(timed)));
  const RunFacts& facts = timed.facts;
  fmt::print("{}\n", summary(timed.model, timed.program.impl().report, facts));
  if (facts.throughput) {
    fmt::print("{}", throughput_lines(*facts.throughput));
  } else {
    fmt::print("{}\n", statistics_line("collage", facts.samples));
    if (facts.alone)
      fmt::print("{}\n", statistics_line(facts.alone->name + " alone", facts.alone->samples));
    for (size_t i = 0; i < timed.rivals.size(); ++i) {
      const std::string& name = timed.rivals.name(i);
      fmt::print("{}\n", statistics_line(name, facts.peers.at(name).samples));
    }
    if (facts.alone)
      fmt::print("over {} alone {}\n", facts.alone->name, to_text(facts.alone->speed_up));
    if (!timed.rivals.none()) fmt::print("{}", rivals_text(facts, timed.rivals));
  }
  fmt::print("{}", memory_line(timed.program.impl().report.arena_bytes, facts.resident_bytes));
  if (options.layers || options.roofline || !options.profile.empty())
    TRY(show_layers(timed.program, timed.inputs, options));
  return timed.rivals.agree();
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
  command->add_option("--benchmark-out", options->benchmark,
                      "write the results in Google Benchmark's form to this file: CSV where its "
                      "name ends so, else JSON");
  CLI::Option* streams =
      command
          ->add_option("--streams", options->streams,
                       "throughput: so many inferences at a time, each with its share of --threads")
          ->check(CLI::Range(1, 1024));
  CLI::Option* batch =
      command
          ->add_option("--batch", options->batches,
                       "one after the other, as the first dimension of the inputs: 1,2,4,8")
          ->delimiter(',')
          ->check(CLI::Range(1, 1 << 20));
  for (const char* other :
       {"--iterations", "--layers", "--roofline", "--profile", "--fresh-costs", "--save-outputs"})
    streams->excludes(command->get_option(other));
  for (const char* other : {"--streams", "--inputs", "--layers", "--roofline", "--profile",
                            "--fresh-costs", "--save-outputs"})
    batch->excludes(command->get_option(other));
  for (const char* other :
       {"--compare", "--iterations", "--layers", "--roofline", "--profile", "--fresh-costs",
        "--json", "--save-outputs", "--streams", "--batch", "--benchmark-out"})
    against->excludes(command->get_option(other));
  return {command, [options] { return bench(*options); }};
}

}  // namespace collage::tool
