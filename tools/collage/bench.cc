// collage bench: latency statistics, throughput of several streams, and a fair comparison with
// other runtimes.

#include "bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/statistics.h"
#include "bench_text.h"
#include "report/layers.h"
#include "report_source.h"

namespace collage::tool {

namespace {

constexpr int kProfiledRuns = 15;

// What --layers asks for.
Status show_layers(Program& program, const std::vector<Tensor>& inputs,
                   const BenchOptions& options) {
  Profile profile = TRY(profile_layers(program.impl(), inputs, kProfiledRuns));
  ThreadTeam team(thread_count(options));
  MachinePeaks peaks = measure_peaks(team);
  raise_memory_peak(peaks, program.impl().report.memory_bytes_per_second);
  fmt::print("{}", layers_table(profile, peaks));
  return {};
}

// The report and outputs, wherever they shall go.
Status write_results(TimedModel& timed, const BenchOptions& options) {
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, timed.program.outputs(), timed.outputs));
  if (!options.json.empty()) {
    const size_t peak = timed.facts.resident_bytes;  // of what was timed
    TRY(add_timeline(timed.program, timed.inputs, timed.facts));
    timed.facts.resident_bytes = peak;
    TRY(write_json(options.json,
                   report_json(timed.model, timed.program.impl().report, timed.facts)));
  }
  return {};
}

bool compares(const BenchOptions& options) {
  return !options.compare.empty() || !options.partitions.empty();
}

bool is_runtime(const std::string& text) { return text == "onnxruntime" || text == "openvino"; }

Status bench(const BenchOptions& options) {
  if (runs_artifact(options)) {
    if (compares(options) || options.layers || options.streams > 0)
      return usage_error("{}: is timed as it is: other flags of bench want --for this",
                         options.model);
    if (std::optional<StagedProgram> staged = TRY(staged_artifact(options)))
      return bench_staged(*staged, options);
    return bench_artifact(options, options.duration);
  }
  if (is_artifact(options.model) && compares(options))
    return usage_error("{}: --compare wants the model's own file", options.model);
  Result<Model> loaded = load(options);
  if (!options.partitions.empty() && (!loaded || options.streams > 0))
    return usage_error("--compare {}: a partition is timed in turns of single inferences",
                       options.partitions[0]);
  if (!loaded) {
    StagedProgram staged = TRY(in_stages(options, loaded.status()));
    return bench_staged(staged, options);
  }
  Model model = TRY(std::move(loaded));
  TimedModel timed = TRY(options.streams > 0 ? time_streams(std::move(model), options)
                                             : time_in_turns(std::move(model), options));
  TRY(write_results(timed, options));
  const RunFacts& facts = timed.facts;
  fmt::print("{}\n", summary(timed.model, timed.program.impl().report, facts));
  if (facts.throughput) {
    fmt::print("{}", throughput_lines(*facts.throughput));
  } else {
    fmt::print("{}\n", statistics_line("collage", facts.samples));
    if (facts.alone)
      fmt::print("{}\n", statistics_line(facts.alone->name + " alone", facts.alone->samples));
    for (const RunFacts::Rival& partition : facts.partitions)
      fmt::print("{}\n", statistics_line(partition.name, partition.samples));
    for (size_t i = 0; i < timed.rivals.size(); ++i) {
      const std::string& name = timed.rivals.name(i);
      fmt::print("{}\n", statistics_line(name, facts.peers.at(name).samples));
    }
    if (facts.alone)
      fmt::print("over {} alone {}\n", facts.alone->name, to_text(facts.alone->speed_up));
    for (const RunFacts::Rival& partition : facts.partitions)
      fmt::print("over {} {}; apparent loss {:.1f}%\n", partition.name, to_text(partition.speed_up),
                 100 * partition.speed_up.apparent_loss());
    if (!timed.rivals.none()) fmt::print("{}", rivals_text(facts, timed.rivals));
  }
  fmt::print("{}", memory_line(timed.program.impl().report.arena_bytes, facts.resident_bytes));
  if (options.layers) TRY(show_layers(timed.program, timed.inputs, options));
  return timed.rivals.agree();
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "latency statistics, and a comparison with other runtimes");
  add_compile_options(*command, *options, kSecondsForPlan);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  add_output_option(*command, *options);
  command
      ->add_option("--compare", options->compare,
                   "onnxruntime, openvino: run these too, interleaved, in processes of their own; "
                   "or FILE, a module or an artifact with a partition of your own")
      ->delimiter(',')
      ->check([](const std::string& text) -> std::string {
        std::error_code code;
        if (is_runtime(text) || std::filesystem::exists(text, code)) return "";
        return text + " is neither onnxruntime nor openvino, nor a file";
      });
  command
      ->add_option("--duration", options->duration,
                   "seconds for the timed runs of each runtime, pauses included (default 3)")
      ->check(positive_number());
  command->add_flag("--layers", options->layers,
                    "the time of every kernel inside whole runs, against the measured peaks of "
                    "this machine");
  CLI::Option* streams =
      command
          ->add_option("--streams", options->streams,
                       "throughput: so many inferences at a time, each with its share of --threads")
          ->check(CLI::Range(1, 1024));
  for (const char* other : {"--layers", "--save-outputs"})
    streams->excludes(command->get_option(other));
  return {command, [options] {
            std::vector<std::string>& named = options->compare;
            const auto files = std::stable_partition(named.begin(), named.end(), is_runtime);
            options->partitions.assign(files, named.end());
            named.erase(files, named.end());
            return bench(*options);
          }};
}

}  // namespace collage::tool
