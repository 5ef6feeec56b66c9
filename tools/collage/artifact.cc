// collage run and bench of what collage compile writes.
#include "artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "base/resident_memory.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "choose/cover_timing.h"
#include "report/report.h"
#include "report/save_program.h"

namespace collage::tool {

namespace {

constexpr int kLoadBlocks = 3;
constexpr int kLoadRuns = 20;

// Of one plan, its model and its report.
Result<std::shared_ptr<ArtifactFile>> open_file(const SharedOptions& options) {
  std::shared_ptr<ArtifactFile> file = TRY(open_signed(options));
  if (file->manifest().has_specialisations())
    return usage_error("{}: it holds a program of several shapes, which `collage run` alone takes",
                       options.model);
  if (file->manifest().has_stages())
    return usage_error(
        "{}: it holds a model that runs in stages, which collage run, bench and verify take",
        options.model);
  return file;
}

// What was taken since anonymous_bytes() gave `before`.
size_t growth(size_t before) {
  const size_t now = anonymous_bytes();
  return now > before ? now - before : 0;
}

// What loading and holding it costs (docs/artifact.md).
struct Figures {
  double load_ms, map_ms, check_ms;
  size_t packed, arena, resident;
};

Figures figures_of(const OpenedArtifact& opened) {
  const ArtifactFile& file = *opened.loaded.file;
  return {1e3 * opened.seconds,
          1e3 * file.map_seconds(),
          1e3 * file.check_seconds(),
          opened.loaded.packed_bytes,
          opened.loaded.plan->arena_bytes,
          opened.memory + file.resident_bytes()};
}

nlohmann::json to_json(const Figures& figures, const std::string& path) {
  std::error_code code;
  return {{"bytes", std::filesystem::file_size(path, code)},
          {"load_ms", figures.load_ms},
          {"map_ms", figures.map_ms},
          {"check_ms", figures.check_ms},
          {"packed_bytes", figures.packed},
          {"arena_bytes", figures.arena},
          {"resident_bytes", figures.resident}};
}

std::string to_text(const Figures& figures) {
  const auto megabytes = [](size_t bytes) { return 1e-6 * static_cast<double>(bytes); };
  return fmt::format(
      "loaded in {:.1f} ms, of which mapping {:.1f}, checksums {:.1f}; holds {:.1f} MB for {:.1f} "
      "of "
      "weights and {:.1f} of intermediate tensors",
      figures.load_ms, figures.map_ms, figures.check_ms, megabytes(figures.resident),
      megabytes(figures.packed), megabytes(figures.arena));
}

// Counts what the first run takes: the arena, and what kernels keep. Nothing of it is timed.
Status run_first(OpenedArtifact& opened, const std::vector<Tensor>& inputs,
                 std::vector<Tensor>& outputs) {
  const size_t before = anonymous_bytes();
  outputs = TRY(opened.run(inputs));
  opened.memory += growth(before);
  return {};
}

Status finish(const SharedOptions& options, const OpenedArtifact& opened, const Figures& figures,
              const std::vector<double>& samples, const std::vector<Tensor>& outputs) {
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, opened.model.outputs(), outputs));
  if (!options.json.empty()) {
    nlohmann::json report = TRY(opened.report(options.model));
    report["latency_ms"] = latency_json(samples);
    report["artifact"] = to_json(figures, options.model);
    TRY(write_json(options.json, report));
  }
  const Manifest& manifest = opened.loaded.file->manifest();
  fmt::print("{}  {} ({})\n{}\nmeasured {:.3f} ms ± {:.3f}, {} threads\n", options.model,
             kernels_of(*opened.loaded.plan), manifest.model, to_text(figures),
             1e3 * median(samples), 1e3 * (percentile(samples, 0.9) - percentile(samples, 0.1)) / 2,
             opened.loaded.threads());
  return {};
}

}  // namespace

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

bool is_artifact(const std::string& path) {
  return std::filesystem::path(path).extension() == kArtifactExtension;
}

Status check_flags(const SharedOptions& options) {
  const bool compiles = !options.targets.empty() || !options.exclude.empty() ||
                        !options.pin.empty() || !options.memory.empty() ||
                        !options.devices.empty() || !options.config.empty() ||
                        options.max_error > 0 || !options.shapes.empty() || !options.dims.empty() ||
                        !options.constants.empty();
  if (compiles)
    return usage_error(
        "{}: is compiled already: its targets, shapes and precision stay, unless "
        "--for this is given",
        options.model);
  return {};
}

Result<std::shared_ptr<ArtifactFile>> open_signed(const SharedOptions& options) {
  const std::string& key = options.required_signature;
  if (key.empty()) return ArtifactFile::open(options.model).with_context(options.model);
  const std::string text = TRY(read_key("--require-signature", key));
  const Result<PublicKey> signer =
      PublicKey::parse(text).with_context("--require-signature " + key);
  if (!signer) return signer.status();
  return ArtifactFile::open(options.model, *signer).with_context(options.model);
}

Result<Model> load_embedded(const SharedOptions& options) {
  const std::shared_ptr<ArtifactFile> file = TRY(open_file(options));
  return embedded_model(*file).with_context(options.model);
}

Result<nlohmann::json> load_embedded_report(const SharedOptions& options) {
  const std::shared_ptr<ArtifactFile> file = TRY(open_file(options));
  return embedded_report(*file).with_context(options.model);
}

Result<std::vector<Tensor>> OpenedArtifact::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs(loaded.plan->outputs.size());
  TRY(executor.run(inputs, outputs));
  return outputs;
}

Result<nlohmann::json> OpenedArtifact::report(const std::string& path) const {
  return embedded_report(*loaded.file).with_context(path);
}

Result<OpenedArtifact> open_artifact(const SharedOptions& options, EmbeddedWeights weights) {
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  TRY(check_destinations(options));
  register_all();
  const size_t before = anonymous_bytes();
  const Stopwatch watch;
  const std::shared_ptr<ArtifactFile> file = TRY(open_file(options));
  TRY(check_flags(options));
  file->use_threads(options.threads);
  if (weights == EmbeddedWeights::kRead) TRY(file->check_hashes().with_context(options.model));
  Result<LoadedArtifact> loaded = load_artifact(file).with_context(options.model);
  if (!loaded) {
    if (loaded.status().code() != ErrorCode::kUnavailable) return std::move(loaded).status();
    return error(ErrorCode::kUnavailable, "{} (--for this compiles the model inside it)",
                 loaded.status().to_string());
  }
  Executor executor = TRY(Executor::create(loaded->plan, loaded->threads()));
  const double seconds = watch.seconds();
  const size_t memory = growth(before);
  Model model = TRY(embedded_model(*file, weights).with_context(options.model));
  file->forget(kModuleEntry);
  return OpenedArtifact{std::move(loaded).value(), std::move(executor), std::move(model), seconds,
                        memory};
}

Status run_artifact(const SharedOptions& options) {
  OpenedArtifact opened = TRY(open_artifact(options, EmbeddedWeights::kUnread));
  const std::vector<Tensor> inputs = TRY(make_inputs(opened.model, options));
  std::vector<Tensor> outputs;
  std::vector<double> samples;
  TRY(run_first(opened, inputs, outputs));
  const Figures figures = figures_of(opened);
  for (int block = 0; block < kLoadBlocks; ++block)
    TRY(run_block(opened.executor, inputs, outputs, {}, samples));
  return finish(options, opened, figures, samples, outputs);
}

Status bench_artifact(const SharedOptions& options, double duration) {
  OpenedArtifact opened = TRY(open_artifact(options, EmbeddedWeights::kUnread));
  const std::vector<Tensor> inputs = TRY(make_inputs(opened.model, options));
  std::vector<Tensor> outputs;
  std::vector<double> samples;
  TRY(run_first(opened, inputs, outputs));
  const Figures figures = figures_of(opened);
  BlockOptions block;
  const Stopwatch watch;
  block.runs_per_block = kLoadRuns;
  while (samples.empty() || watch.seconds() < duration)
    TRY(run_block(opened.executor, inputs, outputs, block, samples));
  TRY(finish(options, opened, figures, samples, outputs));
  fmt::print("{:<13} median {:9.3f} ms   p10 {:9.3f}   p90 {:9.3f}   {} runs\n", "collage",
             1e3 * median(samples), 1e3 * percentile(samples, 0.1), 1e3 * percentile(samples, 0.9),
             samples.size());
  return {};
}

}  // namespace collage::tool
