#include "specialised.h"

#include <collage/dynamic.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "artifact.h"
#include "artifact/specialisations.h"
#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "base/interrupt.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "choose/cover_timing.h"
#include "dynamic/dynamic_program.h"
#include "dynamic_model.h"
#include "frontend/onnx/importer.h"
#include "ops/random_inputs.h"
#include "progress_line.h"
#include "runtime/executor.h"

namespace collage::tool {

namespace {

constexpr int kBlocks = 3;
constexpr int kRuns = 20;

Result<std::map<std::string, std::vector<int64_t>>> buckets_of(const SharedOptions& options,
                                                               const BucketFlags& flags) {
  std::map<std::string, std::vector<int64_t>> buckets;
  for (const std::string& text : flags.buckets) {
    const auto [name, sizes] = TRY(split_assignment("--bucket", text));
    std::istringstream parts(sizes);
    for (std::string part; std::getline(parts, part, ',');)
      buckets[name].push_back(TRY(parse_extent("--bucket", text, part)));
  }
  for (const auto& [name, size] : TRY(load_options(options)).dims) buckets[name] = {size};
  return buckets;
}

// What stands for the * of a pattern in `name`; none where it does not match.
std::optional<std::string> wildcard_in(const std::string& name, const std::string& pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern ? std::optional("") : std::nullopt;
  const std::string end = pattern.substr(star + 1);
  if (name.size() < pattern.size() - 1 || name.compare(0, star, pattern, 0, star) != 0 ||
      !name.ends_with(end))
    return std::nullopt;
  return name.substr(star, name.size() - star - end.size());
}

// `inputs` are the model's.
Result<std::map<std::string, std::string>> states_of(const BucketFlags& flags,
                                                     const std::vector<ModelInput>& inputs) {
  std::map<std::string, std::string> states;
  for (const std::string& text : flags.states) {
    const auto [from, to] = TRY(split_assignment("--state", text));
    const size_t before = states.size();
    for (const ModelInput& input : inputs)
      if (const std::optional<std::string> matched = wildcard_in(input.name, from)) {
        std::string output = to;
        if (const size_t star = to.find('*'); star != std::string::npos)
          output.replace(star, 1, *matched);
        states[input.name] = output;
      }
    if (states.size() == before)
      return usage_error("--state {}: the model has no such input", text);
  }
  return states;
}

std::string kernels_text(const Plan* plan) {
  return plan == nullptr ? "nothing to compute" : kernels_of(*plan);
}

Result<std::vector<Tensor>> random_for(const PlanForShapes& names, const Plan& plan) {
  std::vector<Tensor> inputs;
  uint64_t seed = 0;
  for (size_t i = 0; i < names.inputs.size(); ++i) {
    const auto known = names.conditions.find(names.inputs[i]);
    const bool fixed = known != names.conditions.end() && known->second.value;
    inputs.push_back(fixed ? *known->second.value
                           : random_tensor(plan.inputs[i].type, ++seed, {0, 1}));
  }
  return inputs;
}

Status time_each(LoadedSpecialisations& program) {
  for (size_t i = 0; i < program.specialisations().size(); ++i) {
    const PlanForShapes& names = program.specialisations()[i];
    const std::shared_ptr<const Plan> plan = TRY(program.plan(i));
    std::vector<double> samples;
    if (plan != nullptr) {
      Executor executor = TRY(Executor::create(plan, program.threads()));
      std::vector<Tensor> outputs(plan->outputs.size());
      const std::vector<Tensor> inputs = TRY(random_for(names, *plan));
      for (int block = 0; block < kBlocks; ++block)
        TRY(run_block(executor, inputs, outputs, {}, samples));
    }
    fmt::print("{:9.3f} ms  {}  {}\n", samples.empty() ? 0 : 1e3 * median(samples),
               shapes_text(names.conditions), kernels_text(plan.get()));
  }
  return {};
}

Status run_given(const SharedOptions& options, const Program& program) {
  const TensorsByName given = TRY(given_inputs(program.inputs(), options));
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : program.inputs()) {
    const auto found = given.find(info.name);
    if (found == given.end())
      return usage_error("{}: input '{}' is not given", options.model, info.name);
    inputs.push_back(found->second);
  }
  Context context = TRY(program.make_context());
  std::vector<Tensor> outputs;
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    context.reset();
    const Stopwatch watch;
    outputs = TRY(context.run(inputs).with_context(options.model));
    seconds.push_back(watch.seconds());
  }
  const std::vector<TensorInfo> infos = infos_of(program.outputs(), outputs);
  for (const TensorInfo& info : infos)
    fmt::print("output '{}': {} {}\n", info.name, dtype_name(info.dtype),
               shape_to_string(info.shape));
  if (!options.save_outputs.empty()) TRY(save_tensors(options.save_outputs, infos, outputs));
  fmt::print("{}: {:.3f} ms (median of {} runs)\n", options.model, 1e3 * median(seconds), kRuns);
  return {};
}

}  // namespace

void add_bucket_flags(CLI::App& command, BucketFlags& flags) {
  command
      .add_option("--bucket", flags.buckets,
                  "NAME=8,64: compile for these sizes of a symbolic dimension; inputs are padded "
                  "to the smallest that holds them")
      ->allow_extra_args(false);
  command
      .add_option("--state", flags.states,
                  "INPUT=OUTPUT: the program keeps this input from run to run; 'past.*=present.*' "
                  "stands for several")
      ->allow_extra_args(false);
}

Status compile_specialised(const SharedOptions& options, const BucketFlags& flags,
                           const std::string& output, const std::string& signing_key) {
  if (!options.json.empty() || !options.save_outputs.empty() || !options.shapes.empty() ||
      !options.inputs.empty())
    return usage_error(
        "--bucket: a program of several shapes has no --json, --save-outputs, --shapes and "
        "--inputs");
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  DynamicOptions dynamic;
  dynamic.program = TRY(program_options(options));
  const LoadOptions load = TRY(load_options(options));
  dynamic.constants = load.constants;
  dynamic.data_roots = load.data_roots;
  dynamic.buckets = TRY(buckets_of(options, flags));
  if (!flags.states.empty())
    dynamic.states = TRY(states_of(flags, TRY(inspect_onnx(options.model)).inputs));
  Program program = TRY(Program::compile(options.model, dynamic));
  ProgressLine progress;
  InterruptScope interrupts;
  dynamic_program(program).context.progress = &progress;
  TRY(program.prepare_buckets().with_context(options.model));
  TRY(program.save(output, signing_key).with_context(options.model));
  size_t count = 0;
  double seconds = 0;
  for (const SpecialisationInfo& made : program.specialisations()) {
    ++count;
    seconds += made.compile_seconds;
    fmt::print("{} kernels for {}\n", made.kernels, made.shapes);
  }
  std::error_code code;  // of what is no regular file
  const auto bytes = static_cast<double>(std::filesystem::file_size(output, code));
  fmt::print("{}: {} specialisations, {:.1f} MB, compiled in {:.0f} s\n", output, count,
             code ? 0 : 1e-6 * bytes, seconds);
  return {};
}

bool is_specialised(const SharedOptions& options) {
  const Result<std::shared_ptr<ArtifactFile>> file = open_signed(options);
  return file.ok() && (*file)->manifest().has_specialisations();
}

Status run_specialised(const SharedOptions& options) {
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  TRY(check_destinations(options));
  if (!options.json.empty() || (options.inputs.empty() && !options.save_outputs.empty()))
    return usage_error("{}: a program of several shapes has no {}", options.model,
                       options.json.empty() ? "--save-outputs without --inputs" : "--json");
  register_all();
  TRY(check_flags(options));
  if (!options.inputs.empty()) {
    const std::string& key = options.required_signature;
    Result<Program> program =
        key.empty() ? Program::load(options.model, options.threads)
                    : Program::load_signed(options.model, TRY(read_key("--require-signature", key)),
                                           options.threads);
    return run_given(options, TRY(std::move(program)));
  }
  const std::shared_ptr<ArtifactFile> file = TRY(open_signed(options));
  file->use_threads(options.threads);
  const std::shared_ptr<LoadedSpecialisations> program =
      TRY(LoadedSpecialisations::load(file).with_context(options.model));
  return time_each(*program);
}

}  // namespace collage::tool
