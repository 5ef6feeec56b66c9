#include "report_source.h"

#include <algorithm>

#include "artifact.h"
#include "backend/targets/backends.h"
#include "base/resident_memory.h"
#include "frontend/script/script.h"
#include "report/layers.h"
#include "report/read_report.h"
#include "tensor_program/module_programs.h"

namespace collage::tool {

namespace {

// What a shell takes for one word.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

bool has_mock_costs(const SharedOptions& options) {
  if (options.config.empty()) return false;
  Result<PartitionConfig> config = read_config(options.config);
  return config.ok() && config->mock_costs.has_value();
}

Result<CompileReport> mock_report(const Model& model, const SharedOptions& options) {
  PartitionConfig config = TRY(read_config(options.config));
  const MockPartition partition = TRY(mock_partition(model.impl().module, options, config, true));
  if (partition.search.covers.empty())
    return unsupported("{}: nothing to partition", options.model);
  return report_of(partition, config);
}

}  // namespace

Result<Model> load_as_written(const SharedOptions& options,
                              std::unordered_set<const void*>& unknown, bool positions) {
  if (!tensor_program::is_module_text(options.model)) return load(options);
  TRY(check_destinations(options));
  auto impl = std::make_shared<internal::ModelImpl>();
  impl->path = options.model;
  impl->module = TRY(load_text_as_is(options.model, unknown, positions));
  return Model(std::move(impl));
}

Result<MockPartition> mock_partition(Module module, const SharedOptions& options,
                                     const PartitionConfig& config, bool keep_search) {
  TRY(tensor_program::link_programs(module));
  const TargetConstraints constraints =
      TRY(TargetConstraints::parse(options.exclude, options.pin, {}, config.specs));
  TRY(constraints.check_pins(config.specs));
  return partition_with_mock_costs(constraints.annotated(std::move(module)), config, keep_search);
}

Result<ReportSource> ReportSource::open(const SharedOptions& options, bool timed) {
  ReportSource source;
  source.options_ = options;
  if (std::filesystem::path(options.model).extension() == ".json") {
    source.report_ = TRY(read_report(options.model));
    return source;
  }
  if (runs_artifact(options)) {
    source.report_ = TRY(load_embedded_report(options));
    return source;
  }
  register_all();
  RunFacts facts;
  facts.threads = thread_count(options);
  if (has_mock_costs(options)) {
    std::unordered_set<const void*> unknown;
    Model model = TRY(load_as_written(options, unknown));
    source.report_ = report_json(model, TRY(mock_report(model, options)), facts);
    source.predict_ = [model](const SharedOptions& other) -> Result<CoverPrediction> {
      const double seconds = TRY(mock_report(model, other)).predicted_seconds;
      return CoverPrediction{seconds, seconds};
    };
    return source;
  }
  Model model = TRY(load(options));
  Program program = TRY(compile(model, options, &facts.compile_seconds));
  if (timed) {
    std::vector<Tensor> inputs = TRY(make_inputs(model, options));
    TRY(add_timeline(program, inputs, facts));
  }
  source.report_ = report_json(model, program.impl().report, facts);
  source.predict_ = [model](const SharedOptions& other) -> Result<CoverPrediction> {
    return predict_seconds(model, TRY(program_options(other)));
  };
  return source;
}

void ReportSource::ask(const std::string& flag, const std::string& value) {
  if (!predict_) return;
  SharedOptions other = options_;
  (flag == "--exclude" ? other.exclude : other.pin).push_back(value);
  if (!without_flags_) {
    const Result<CoverPrediction> base = predict_(options_);
    without_flags_ = base.ok() ? base->now : 0;
  }
  const Result<CoverPrediction> found = predict_(other);
  nlohmann::json entry = {{"flag", flag + " " + quoted(value)}};
  if (found.ok()) {
    entry["predicted_ms"] = 1e3 * found->predicted;
    entry["change_ms"] = 1e3 * (found->now - *without_flags_);
  } else {
    entry["failure"] = found.status().to_string();
  }
  report_["what_if"].push_back(std::move(entry));
}

void ReportSource::ask_each_target() {
  for (const nlohmann::json& target : report_["targets"]) {
    const std::string text = target.get<std::string>();
    const Backend* backend = find_backend(text.substr(0, text.find(' ')));
    if (backend != nullptr && backend->traits().is_host) continue;
    ask("--exclude", text);
    ask("--pin", ".*=" + text);
  }
}

std::string exactly(const std::vector<std::string>& names) {
  std::string any;
  for (const std::string& name : names) {
    any += any.empty() ? "" : "|";
    for (char c : name)
      any += std::string_view("\\^$.|?*+()[]{}").find(c) == std::string_view::npos
                 ? std::string(1, c)
                 : std::string("\\") + c;
  }
  return "^(" + any + ")$";
}

Status add_timeline(Program& program, std::span<const Tensor> inputs, RunFacts& facts) {
  constexpr int kRuns = 5;
  reset_peak_resident_bytes();
  Profile profile = TRY(profile_layers(program.impl(), inputs, kRuns));
  facts.resident_bytes = peak_resident_bytes();
  ThreadTeam team(facts.threads);
  facts.peaks = measure_peaks(team);
  raise_memory_peak(*facts.peaks, program.impl().report.memory_bytes_per_second);
  // A run of middling length stands for all.
  std::vector<size_t> order(profile.runs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return profile.whole_runs[a] < profile.whole_runs[b]; });
  const std::vector<double>& run = profile.runs[order[order.size() / 2]];
  for (size_t s = 0; s < profile.layers.size(); ++s)
    facts.timeline.emplace_back(profile.layers[s].name, run[s]);
  return {};
}

}  // namespace collage::tool
