// collage verify: run against the reference interpreter, or against given outputs, and report the
// largest errors.

#include <fmt/format.h>

#include <optional>

#include "artifact.h"
#include "choose/layerwise.h"
#include "compiler/model_stages.h"
#include "dynamic_model.h"
#include "expectation.h"
#include "options.h"
#include "report/model_reference.h"
#include "report/report.h"
#include "verify/reference_check.h"

namespace collage::tool {

namespace {

// The first kernel whose own result is wrong, on the inputs that the reference gives it.
Status check_layerwise(const Program& program, const std::vector<Tensor>& inputs,
                       const SharedOptions& options) {
  std::map<std::string, StepMeaning> kernels;
  std::map<std::string, std::string> nodes;
  for (const ReportedPlan::Kernel& kernel : program.impl().report.kernels) {
    kernels[kernel.name] = {kernel.function, kernel.variant.rounding};
    for (const ReportedPlan::Kernel::OpRef& op : kernel.ops)
      nodes[kernel.name] += " " + (op.onnx_node.empty() ? op.op : op.onnx_node);
  }
  CompileOptions compile;
  compile.threads = thread_count(options);
  LayerwiseResult result =
      TRY(verify_layerwise(program.impl().executor->plan(), kernels, inputs, compile));
  auto describe = [&](const LayerDifference& layer) {
    const Difference& d = layer.difference;
    return fmt::format(
        "{} ({}) output {} element {}: {:.9g} instead of {:.9g}, {:.3g} of the allowed error",
        layer.step, nodes[layer.step].empty() ? "conversion" : nodes[layer.step].substr(1),
        layer.output, element_index(layer.shape, d.worst_element), d.worst_actual, d.worst_expected,
        d.worst_of_allowed);
  };
  fmt::print("layerwise: {} steps, each on the reference's own inputs\n", result.steps);
  if (!result.worst.step.empty()) fmt::print("largest error: {}\n", describe(result.worst));
  if (!result.first_wrong) return {};
  fmt::print("first wrong: {}\n", describe(*result.first_wrong));
  return error(ErrorCode::kVerification, "{}: kernel {}: output {} {}", options.model,
               result.first_wrong->step, result.first_wrong->output,
               result.first_wrong->difference.reason);
}

struct VerifyOptions : SharedOptions {
  Expectation expectation;
  bool layerwise = false;
};

// What to run and what must come of it: one pair of inputs and outputs; with random inputs on which
// some output says nothing, those of other ranges too.
Result<std::vector<ReferenceInputs>> questions(const std::vector<Tensor>& inputs,
                                               ReferenceCheck& reference,
                                               const VerifyOptions& options,
                                               const std::optional<Expected>& expected) {
  if (expected)
    return std::vector<ReferenceInputs>{{"the inputs given", inputs, expected->outputs}};
  std::vector<ReferenceInputs> all = {TRY(reference.given(0))[0]};
  if (!options.inputs.empty() || reference.silent(all).empty()) return all;
  const std::span<const ReferenceInputs> others = TRY(reference.seeded());
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// The worse of two; what they say of elements is that one's which errs more for what is allowed.
Difference worse_of(const Difference& a, const Difference& b) {
  Difference worse = a.within == b.within ? (a.worst_of_allowed < b.worst_of_allowed ? b : a)
                     : a.within           ? b
                                          : a;
  worse.excused = a.excused || b.excused;
  worse.max_abs = std::max(a.max_abs, b.max_abs);
  worse.max_rel = std::max(a.max_rel, b.max_rel);
  return worse;
}

// As the reference draws what is random.
Result<std::vector<Tensor>> first_run(Program& program, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs(program.outputs().size());
  TRY(program.impl().executor->run(inputs, outputs));
  return outputs;
}

Status verify(const VerifyOptions& options) {
  const Expectation& expectation = options.expectation;
  std::optional<OpenedArtifact> artifact;
  if (runs_artifact(options)) {
    if (options.layerwise)
      return usage_error(
          "{}: --layerwise wants --for this: an artifact's kernels do not say what "
          "they compute",
          options.model);
    if (!expectation.runtime.empty())
      return usage_error("{}: --compare wants the model's own file", options.model);
    if (std::optional<StagedProgram> staged = TRY(staged_artifact(options)))
      return verify_staged(*staged, options, expectation);
    artifact.emplace(TRY(open_artifact(options, EmbeddedWeights::kRead)));
  }
  Result<Model> loaded = artifact ? Result<Model>(artifact->model) : load(options);
  if (!loaded) {
    StagedProgram staged = TRY(in_stages(options, loaded.status()));
    if (options.layerwise)
      return usage_error("{}: --layerwise: a model that runs in stages has no plan", options.model);
    return verify_staged(staged, options, expectation);
  }
  const bool is_strict = options.accuracy == "strict";
  const Model model =
      is_strict ? TRY(in_strict_form(TRY(std::move(loaded)))) : TRY(std::move(loaded));
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  ReferenceCheckOptions judging;
  judging.given = {inputs};
  if (is_strict) judging.rounding = {};
  const ModelReference held_to = model_reference(
      model, artifact ? artifact->loaded.file->manifest().max_error : options.max_error);
  ReferenceCheck reference(held_to.function, judging);
  std::optional<Expected> expected;
  if (expectation.is_given())
    expected = TRY(expectation.outputs(options, model.inputs(), inputs, model.outputs().size()));
  const std::vector<ReferenceInputs> all = TRY(questions(inputs, reference, options, expected));
  RunFacts facts;
  facts.threads = thread_count(options);
  std::optional<Program> program;
  if (!artifact) program.emplace(TRY(compile(model, options, &facts.compile_seconds, inputs)));
  std::vector<Tensor> outputs;  // of the first
  std::vector<Difference> differences(model.outputs().size());
  for (const ReferenceInputs& one : all) {
    std::vector<Tensor> actual =
        TRY(artifact ? artifact->run(one.inputs) : first_run(*program, one.inputs));
    for (size_t i = 0; i < actual.size(); ++i)
      differences[i] =
          worse_of(differences[i], TRY(reference.compare(one, i, actual[i], held_to.tolerance)));
    if (outputs.empty()) outputs = std::move(actual);
  }
  const std::map<size_t, std::string> silent = reference.silent(all);
  facts.verification = RunFacts::Verification{};
  std::string failure, unproved;
  for (size_t i = 0; i < differences.size(); ++i) {
    const Difference& difference = differences[i];
    const std::string& name = model.outputs()[i].name;
    const auto reason = silent.find(i);
    fmt::print(
        "output {} '{}': largest error {:.3g}, {:.3g} of the largest value like it, {:.3g} of the "
        "allowed error{}{}{}\n",
        i, name, difference.max_abs, difference.max_rel, difference.worst_of_allowed,
        difference.excused ? ", which is what roundings alone move it by" : "",
        difference.within ? "" : "  WRONG",
        reason == silent.end() ? "" : "  proves nothing: " + reason->second);
    facts.verification->max_abs = std::max(facts.verification->max_abs, difference.max_abs);
    facts.verification->max_rel = std::max(facts.verification->max_rel, difference.max_rel);
    facts.verification->within = facts.verification->within && difference.within;
    if (!difference.within && failure.empty())
      failure = fmt::format("output '{}': {}", name, difference.reason);
    if (reason == silent.end()) continue;
    facts.verification->uninformative.push_back(name);
    unproved += fmt::format("{}'{}' is {}", unproved.empty() ? "" : ", ", name, reason->second);
  }
  if (!differences.empty() && silent.size() == differences.size() && failure.empty())
    failure = "this proves nothing: output " + unproved;
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, model.outputs(), outputs));
  if (!options.json.empty()) {
    nlohmann::json report = artifact ? TRY(artifact->report(options.model))
                                     : report_json(model, program->impl().report, facts);
    report["verification"] = verification_json(*facts.verification);
    TRY(write_json(options.json, report));
  }
  // A kernel that is wrong by itself says more than the output it spoils.
  if (options.layerwise) TRY(check_layerwise(*program, inputs, options));
  if (!failure.empty()) return error(ErrorCode::kVerification, "{}: {}", options.model, failure);
  fmt::print("{}: verified against {} ({}){}\n", options.model,
             expected ? expected->by : "the reference interpreter", held_to.bound,
             unproved.empty() ? "" : "; this proves nothing of some outputs: " + unproved);
  return {};
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "run against the reference and report the largest errors");
  add_compile_options(*command, *options, 0);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  add_output_option(*command, *options);
  CLI::Option* expect =
      command->add_option("--expect", options->expectation.folder,
                          "a folder of expected outputs, 0_NAME.npy …, instead of the reference");
  command
      ->add_option("--compare", options->expectation.runtime,
                   "onnxruntime, openvino: what this runtime makes of the model's file, which it "
                   "imports itself, instead of the reference")
      ->check(CLI::IsMember({"onnxruntime", "openvino"}))
      ->excludes(expect);
  command->add_flag("--layerwise", options->layerwise,
                    "find the first kernel whose own result is wrong");
  return {command, [options] { return verify(*options); }};
}

}  // namespace collage::tool
