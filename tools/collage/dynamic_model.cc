#include "dynamic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "artifact.h"
#include "backend/targets/plugins.h"
#include "base/stopwatch.h"
#include "dynamic/dynamic_program.h"
#include "runtime/npy.h"
#include "verify/comparison.h"

namespace collage::tool {

namespace {

constexpr int kDynamicRuns = 20;

Result<StagedProgram> open_staged(const SharedOptions& options) {
  DynamicOptions dynamic;
  dynamic.program = TRY(program_options(options));
  const LoadOptions load = TRY(load_options(options));
  dynamic.constants = load.constants;
  dynamic.data_roots = load.data_roots;
  if (!options.required_signature.empty())
    dynamic.public_key = TRY(read_key("--require-signature", options.required_signature));
  Program program = TRY(Program::compile(options.model, dynamic));
  TensorsByName given = TRY(given_inputs(program.inputs(), options));
  std::map<std::string, Shape> shapes = load.shapes;
  for (const auto& [name, tensor] : given) shapes[name] = tensor.shape();
  TensorsByName tensors = TRY(random_tensors(*dynamic_program(program).context.model,
                                             program.inputs(), load.dims, shapes, kInputSeed));
  for (auto& [name, tensor] : given) tensors[name] = std::move(tensor);
  auto progress = std::make_unique<ProgressLine>();
  dynamic_program(program).context.progress = progress.get();
  return StagedProgram{std::move(program), std::move(tensors), std::move(progress)};
}

}  // namespace

std::vector<Tensor> StagedProgram::inputs() const {
  std::vector<Tensor> result;
  for (const TensorInfo& info : program.inputs()) result.push_back(tensors.at(info.name));
  return result;
}

std::vector<TensorInfo> StagedProgram::input_infos() const {
  return infos_of(program.inputs(), inputs());
}

// Of what a model that runs in stages gives.
static Status check_results(const SharedOptions& options) {
  TRY(check_destinations(options));
  if (!options.json.empty())
    return unsupported("{}: --json: a model that runs in stages has no report of one plan",
                       options.model);
  return {};
}

Result<std::optional<StagedProgram>> staged_artifact(const SharedOptions& options) {
  if (!runs_artifact(options) || !TRY(open_signed(options))->manifest().has_stages())
    return std::optional<StagedProgram>();
  SharedOptions compiling = options;  // further stages are, for any shapes
  compiling.shapes.clear();
  compiling.dims.clear();
  TRY(check_flags(compiling));
  TRY(check_results(options));
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  return std::optional<StagedProgram>(TRY(open_staged(options)));
}

static Result<StagedProgram> open_after(const SharedOptions& options, const Status& failure) {
  if (failure.code() != ErrorCode::kUnsupported) return failure;
  Result<StagedProgram> staged = open_staged(options);
  if (!staged) return staged.status().code() == ErrorCode::kUnsupported ? failure : staged.status();
  return staged;
}

Status runs_in_stages(const SharedOptions& options, const Status& failure) {
  return open_after(options, failure).status();
}

Result<StagedProgram> in_stages(const SharedOptions& options, const Status& failure) {
  StagedProgram staged = TRY(open_after(options, failure));
  TRY(check_results(options));
  return staged;
}

Result<TensorsByName> given_inputs(const std::vector<TensorInfo>& infos,
                                   const SharedOptions& options) {
  TensorsByName given;
  for (const std::string& text : options.inputs) {
    const auto info = std::find_if(infos.begin(), infos.end(), [&](const TensorInfo& one) {
      return text.rfind(one.name + "=", 0) == 0 && text.size() > one.name.size() + 1;
    });
    if (info == infos.end()) return usage_error("--inputs {}: the model has no such input", text);
    given[info->name] = TRY(read_npy(text.substr(info->name.size() + 1)));
  }
  return given;
}

std::vector<TensorInfo> infos_of(const std::vector<TensorInfo>& declared,
                                 const std::vector<Tensor>& outputs) {
  std::vector<TensorInfo> infos;
  for (size_t i = 0; i < outputs.size(); ++i)
    infos.push_back({declared[i].name, outputs[i].shape(), outputs[i].dtype()});
  return infos;
}

// Prints what the stages are; how many kernels they have, and how many of them are interpreted.
static std::pair<size_t, size_t> print_stages(const StagedProgram& staged) {
  size_t kernels = 0, interpreted = 0;
  for (const SpecialisationInfo& made : staged.program.specialisations()) {
    kernels += made.kernels;
    interpreted += made.interpreted;
    if (!made.interpreted)
      fmt::print("{}: {} kernels for {}\n", made.part, made.kernels, made.shapes);
  }
  return {kernels, interpreted};
}

Status compile_staged(StagedProgram& staged, const SharedOptions& options,
                      const std::string& output, const std::string& signing_key) {
  const std::vector<Tensor> outputs =
      TRY(staged.program.run(staged.inputs()).with_context(options.model));
  TRY(staged.program.save(output, signing_key).with_context(options.model));
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, infos_of(staged.program.outputs(), outputs), outputs));
  const auto [kernels, interpreted] = print_stages(staged);
  const bool holds_model = dynamic_program(staged.program).graph->has_stages();
  fmt::print("{}: {}: {} kernels, {} small parts interpreted\n", output,
             holds_model ? "shapes depend on values, so it holds the model too"
                         : "it serves inputs of these shapes",
             kernels, interpreted);
  return {};
}

Status run_staged(StagedProgram& staged, const SharedOptions& options) {
  const std::vector<Tensor> inputs = staged.inputs();
  const Stopwatch compiling;
  std::vector<Tensor> outputs = TRY(staged.program.run(inputs));
  const double first = compiling.seconds();
  std::vector<double> seconds;
  for (int i = 0; i < kDynamicRuns; ++i) {
    const Stopwatch watch;
    outputs = TRY(staged.program.run(inputs));
    seconds.push_back(watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kDynamicRuns / 2, seconds.end());
  const std::vector<TensorInfo> infos = infos_of(staged.program.outputs(), outputs);
  if (!options.save_outputs.empty()) TRY(save_tensors(options.save_outputs, infos, outputs));
  const auto [kernels, interpreted] = print_stages(staged);
  for (const TensorInfo& info : infos)
    fmt::print("output '{}': {} {}\n", info.name, dtype_name(info.dtype),
               shape_to_string(info.shape));
  fmt::print(
      "{}: {:.2f} ms (median of {} runs){}: {} kernels, {} small parts interpreted; the first run "
      "{}, {:.1f} s\n",
      options.model, seconds[kDynamicRuns / 2] * 1e3, kDynamicRuns,
      dynamic_program(staged.program).graph->has_stages() ? "; shapes depend on values" : "",
      kernels, interpreted, runs_artifact(options) ? "loaded them" : "compiled", first);
  return {};
}

Status verify_staged(StagedProgram& staged, const SharedOptions& options,
                     const Expectation& expectation) {
  const std::vector<Tensor> outputs = TRY(staged.program.run(staged.inputs()));
  const size_t count = outputs.size();
  const Expected expected =
      expectation.is_given()
          ? TRY(expectation.outputs(options, staged.input_infos(), staged.inputs(), count))
          : Expected{"the reference interpreter",
                     TRY(run_reference(dynamic_program(staged.program).context, staged.tensors))};
  std::string failure;
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = staged.program.outputs()[i].name;
    const Tensor& wanted = expected.outputs[i];
    if (outputs[i].shape() != wanted.shape()) {
      failure = fmt::format("output '{}' has shape {} instead of {}", name,
                            shape_to_string(outputs[i].shape()), shape_to_string(wanted.shape()));
      continue;
    }
    const Difference difference =
        compare_tensors(outputs[i], wanted, model_tolerance(options.max_error));
    fmt::print("output {} '{}' {}: largest error {:.3g}, {:.3g} of the largest value like it{}\n",
               i, name, shape_to_string(outputs[i].shape()), difference.max_abs, difference.max_rel,
               difference.within ? "" : "  WRONG");
    if (!difference.within && failure.empty())
      failure = fmt::format("output '{}': {}", name, difference.reason);
  }
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, infos_of(staged.program.outputs(), outputs), outputs));
  if (!failure.empty()) return error(ErrorCode::kVerification, "{}: {}", options.model, failure);
  fmt::print("{}: verified against {}\n", options.model, expected.by);
  return {};
}

}  // namespace collage::tool
