// collage compile, and the other sub-commands on what it writes.
#include "artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "artifact/load_artifact.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "compiler/saved_module.h"
#include "report/report.h"
#include "report/save_program.h"
#include "select/cover_timing.h"
#include "targets/backends.h"
#include "verify/comparison.h"
#include "verify/reference_check.h"

namespace collage::tool {

namespace {

constexpr int kBlocks = 3;
constexpr int kBlockRuns = 20;

// A loaded artifact, ready to run.
struct Opened {
  LoadedArtifact loaded;
  Executor executor;
  double seconds = 0;  // that loading took
};

Status check_flags(const SharedOptions& options, int threads) {
  const bool compiles = !options.targets.empty() || !options.exclude.empty() ||
                        !options.pin.empty() || !options.config.empty() || options.max_error > 0 ||
                        !options.shapes.empty() || !options.dims.empty();
  if (compiles)
    return usage_error(
        "{}: is compiled already: its targets, shapes and precision stay, unless "
        "--recompile is given",
        options.model);
  if (options.threads > 0 && options.threads != threads)
    return usage_error("{}: was compiled for {} threads, not {} (see --recompile)", options.model,
                       threads, options.threads);
  return {};
}

Result<Opened> open(const SharedOptions& options) {
  register_all();
  const Stopwatch watch;
  std::shared_ptr<ArtifactFile> file =
      TRY(ArtifactFile::open(options.model).with_context(options.model));
  TRY(check_flags(options, file->manifest().threads));
  Result<LoadedArtifact> loaded = load_artifact(std::move(file)).with_context(options.model);
  if (!loaded) {
    if (loaded.status().code() != ErrorCode::kUnavailable) return std::move(loaded).status();
    return error(ErrorCode::kUnavailable, "{} (--recompile compiles the model inside it)",
                 loaded.status().to_string());
  }
  Executor executor = TRY(Executor::create(loaded->plan, loaded->threads()));
  return Opened{std::move(loaded).value(), std::move(executor), watch.seconds()};
}

// "onednn 50, native 7", in the order in which they first run.
std::string kernels_of(const Plan& plan) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Step& step : plan.steps) {
    const std::string target = step.target.empty() ? "conversions and copies" : step.target;
    auto known = std::find_if(counts.begin(), counts.end(),
                              [&](const auto& entry) { return entry.first == target; });
    if (known == counts.end()) known = counts.insert(known, {target, 0});
    ++known->second;
  }
  std::string text;
  for (const auto& [target, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : " · ", target, count);
  return text.empty() ? "no kernels" : text;
}

Status finish(const SharedOptions& options, Opened& opened, const std::vector<double>& samples,
              const std::vector<TensorInfo>& infos, const std::vector<Tensor>& outputs) {
  if (!options.save_outputs.empty()) TRY(save_tensors(options.save_outputs, infos, outputs));
  const Manifest& manifest = opened.loaded.file->manifest();
  if (!options.json.empty()) {
    nlohmann::json report = TRY(embedded_report(*opened.loaded.file).with_context(options.model));
    report["latency_ms"] = latency_json(samples);
    TRY(write_json(options.json, report));
  }
  fmt::print("{}  {} ({})\nloaded in {:.1f} ms, measured {:.3f} ms ± {:.3f}, {} threads\n",
             options.model, kernels_of(*opened.loaded.plan), manifest.model, 1e3 * opened.seconds,
             1e3 * median(samples), 1e3 * (percentile(samples, 0.9) - percentile(samples, 0.1)) / 2,
             manifest.threads);
  return {};
}

}  // namespace

bool is_artifact(const std::string& path) {
  return std::filesystem::path(path).extension() == ".collage";
}

Result<Model> load_embedded(const std::string& path) {
  std::shared_ptr<ArtifactFile> file = TRY(ArtifactFile::open(path).with_context(path));
  return embedded_model(*file).with_context(path);
}

Result<nlohmann::json> load_embedded_report(const std::string& path) {
  std::shared_ptr<ArtifactFile> file = TRY(ArtifactFile::open(path).with_context(path));
  return embedded_report(*file).with_context(path);
}

Status run_artifact(const SharedOptions& options) {
  TRY(check_destinations(options));
  Opened opened = TRY(open(options));
  const Model model = TRY(embedded_model(*opened.loaded.file).with_context(options.model));
  const std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  std::vector<Tensor> outputs;
  std::vector<double> samples;
  for (int block = 0; block < kBlocks; ++block)
    TRY(run_block(opened.executor, inputs, outputs, {}, samples));
  return finish(options, opened, samples, model.outputs(), outputs);
}

Status bench_artifact(const SharedOptions& options, double duration, int iterations, int warm_ups) {
  TRY(check_destinations(options));
  Opened opened = TRY(open(options));
  const Model model = TRY(embedded_model(*opened.loaded.file).with_context(options.model));
  const std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  std::vector<Tensor> outputs;
  std::vector<double> samples;
  BlockOptions block;
  block.warm_ups = warm_ups;
  const Stopwatch watch;
  while (iterations > 0 ? static_cast<int>(samples.size()) < iterations
                        : samples.empty() || watch.seconds() < duration) {
    block.runs_per_block = iterations > 0
                               ? std::min(kBlockRuns, iterations - static_cast<int>(samples.size()))
                               : kBlockRuns;
    TRY(run_block(opened.executor, inputs, outputs, block, samples));
  }
  TRY(finish(options, opened, samples, model.outputs(), outputs));
  fmt::print("{:<13} median {:9.3f} ms   p10 {:9.3f}   p90 {:9.3f}   {} runs\n", "collage",
             1e3 * median(samples), 1e3 * percentile(samples, 0.1), 1e3 * percentile(samples, 0.9),
             samples.size());
  return {};
}

Status verify_artifact(const SharedOptions& options, const std::string& expect) {
  TRY(check_destinations(options));
  Opened opened = TRY(open(options));
  const Model model = TRY(embedded_model(*opened.loaded.file).with_context(options.model));
  const std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  ReferenceCheckOptions judging;
  judging.given = {inputs};
  ReferenceCheck reference(model.impl().module.main(), judging);
  const std::vector<Tensor> expected =
      expect.empty() ? TRY(reference.given(0))[0].expected
                     : TRY(load_tensors("--expect", expect, model.outputs().size()));
  std::vector<Tensor> outputs(model.outputs().size());
  TRY(opened.executor.run(inputs, outputs));
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, model.outputs(), outputs));
  std::string failure;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Difference difference = compare_tensors(outputs[i], expected[i], model_tolerance(0));
    fmt::print("output {} '{}': largest error {:.3g}, {:.3g} of the largest value{}\n", i,
               model.outputs()[i].name, difference.max_abs, difference.max_rel,
               difference.within ? "" : "  WRONG");
    if (!difference.within && failure.empty())
      failure = fmt::format("output '{}': {}", model.outputs()[i].name, difference.reason);
  }
  if (!failure.empty()) return error(ErrorCode::kVerification, "{}: {}", options.model, failure);
  fmt::print("{}: verified against {}\n", options.model,
             expect.empty() ? "the reference interpreter" : expect);
  return {};
}

namespace {

struct CompileOptionsOfTool : SharedOptions {
  std::string output;
};

Status compile_to_file(const CompileOptionsOfTool& options) {
  TRY(check_writable_file("-o", options.output));
  if (!is_artifact(options.output))
    return usage_error("-o {}: an artifact's name ends in .collage", options.output);
  if (is_artifact(options.model) && !options.recompile)
    return usage_error("{}: is compiled already (--recompile compiles the model inside it)",
                       options.model);
  const Model model = TRY(load(options));
  RunFacts facts;
  facts.threads = thread_count(options);
  const Program program = TRY(compile(model, options, &facts.compile_seconds));
  const nlohmann::json report = report_json(model, program.impl().report, facts);
  TRY(save_program(program, model, report, options.output));
  if (!options.json.empty()) TRY(write_json(options.json, report));
  std::error_code code;
  fmt::print("{}: {:.1f} MB\n", options.output,
             1e-6 * static_cast<double>(std::filesystem::file_size(options.output, code)));
  return {};
}

}  // namespace

Command add_compile(CLI::App& app) {
  auto options = std::make_shared<CompileOptionsOfTool>();
  CLI::App* command =
      app.add_subcommand("compile", "compile a model, and write the program to a file");
  add_compile_options(*command, *options);
  add_config_option(*command, *options);
  command->add_option("-o,--output", options->output, "the artifact to write (.collage)")
      ->required();
  command->add_option("--json", options->json, "write the report here");
  return {command, [options] { return compile_to_file(*options); }};
}

}  // namespace collage::tool
