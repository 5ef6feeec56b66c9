// collage compile: a program as an artifact, as a library that needs nothing of Collage, or as a
// module that states its kernels.
#include <fmt/format.h>

#include <filesystem>

#include "artifact.h"
#include "artifact/library/library.h"
#include "base/signature.h"
#include "dynamic_model.h"
#include "ir/text_printer.h"
#include "report/report.h"
#include "report/save_program.h"
#include "specialised.h"

namespace collage::tool {

namespace {

struct CompileOptionsOfTool : SharedOptions {
  std::string output, emit = "artifact";
  std::string signing_key;  // a file's name
  BucketFlags buckets;
};

bool is_module(const std::string& file) {
  return std::filesystem::path(file).extension() == ".relay";
}

Status check_output(const CompileOptionsOfTool& options) {
  TRY(check_writable_file("-o", options.output));
  if (options.emit == "library") {
    if (!is_library_name(options.output))
      return usage_error("-o {}: a library's name ends in .a (static) or .so (shared)",
                         options.output);
    return check_library_tools();
  }
  if (options.emit == "module") {
    if (!is_module(options.output))
      return usage_error("-o {}: a module's name ends in .relay", options.output);
    return {};
  }
  if (!is_artifact(options.output))
    return usage_error("-o {}: an artifact's name ends in .collage", options.output);
  if (runs_artifact(options))
    return usage_error("{}: is compiled already (--for this compiles the model inside it)",
                       options.model);
  return {};
}

// Where it shall run elsewhere.
Status check_for_another(const CompileOptionsOfTool& options) {
  if (options.emit == "library")
    return usage_error("--for: a library is made on the machine that it is for");
  if (!options.buckets.buckets.empty())
    return usage_error("--for: a program of several shapes is made on the machine that it is for");
  if (!options.save_outputs.empty() || !options.inputs.empty())
    return usage_error("--for: what is compiled for another machine does not run here");
  return {};
}

// The text of --sign's file; "" where it is not given.
Result<std::string> signing_key(const CompileOptionsOfTool& options) {
  const std::string& file = options.signing_key;
  if (file.empty()) return std::string();
  if (options.emit != "artifact")
    return usage_error("--sign: only artifacts are signed, no {}", options.emit);
  std::string key = TRY(read_key("--sign", file));
  TRY(SigningKey::parse(key).with_context("--sign " + file));
  return key;
}

// `needs`: what a library needs of Collage.
void print_size(const std::string& file, const std::string& needs = "") {
  std::error_code code;  // of what is no regular file
  const auto bytes = static_cast<double>(std::filesystem::file_size(file, code));
  if (!code) fmt::print("{}: {:.1f} MB\n", file, 1e-6 * bytes);
  if (!needs.empty()) fmt::print("{} needs {}\n", file, needs);
}

// The program of an artifact as a library.
Status convert(const CompileOptionsOfTool& options) {
  OpenedArtifact opened = TRY(open_artifact(options, EmbeddedWeights::kUnread));
  const std::vector<Tensor> inputs = TRY(make_inputs(opened.model, options));
  const Manifest& manifest = opened.loaded.file->manifest();
  const std::string needs = TRY(write_library(
      options.output, *opened.loaded.plan, {manifest.threads, manifest.model, manifest.max_error}));
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, opened.model.outputs(), TRY(opened.run(inputs))));
  if (!options.json.empty()) TRY(write_json(options.json, TRY(opened.report(options.model))));
  print_size(options.output, needs);
  return {};
}

Status compile_to_file(CompileOptionsOfTool options) {
  TRY(check_output(options));
  if (options.machine != "this") options.for_fingerprint = options.machine;
  if (!options.for_fingerprint.empty()) TRY(check_for_another(options));
  const std::string key = TRY(signing_key(options));
  if (!options.buckets.buckets.empty()) {
    if (options.emit != "artifact")
      return usage_error("--bucket: a program of several shapes is an artifact");
    return compile_specialised(options, options.buckets, options.output, key);
  }
  if (!options.buckets.states.empty())
    return usage_error("--state needs --bucket for the dimension that grows");
  const bool library = options.emit == "library";
  if (library && runs_artifact(options)) return convert(options);
  // Kernels of native need nothing of Collage, and are preferred to the reference, whatever that
  // costs.
  if (library && options.targets.empty() && options.config.empty()) options.targets = {"native"};
  if (library) options.exclude.push_back("reference");
  Result<Model> loaded = load(options);
  if (!loaded && !options.for_fingerprint.empty()) return loaded.status();
  if (!loaded) {
    StagedProgram staged = TRY(in_stages(options, loaded.status()));
    if (options.emit != "artifact")
      return unsupported("{}: shapes depend on values, so it runs in stages, which no {} holds",
                         options.model, options.emit);
    return compile_staged(staged, options, options.output, key);
  }
  const Model model = TRY(std::move(loaded));
  const std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  Program program = TRY(compile(model, options, &facts.compile_seconds, inputs));
  facts.threads = program.impl().threads;
  const nlohmann::json report = report_json(model, program.impl().report, facts);
  std::string needs;
  if (library) {
    needs = TRY(write_library(
        options.output, *program.impl().plan,
        {facts.threads, model.impl().path.filename().string(), program.impl().max_error}));
  } else if (options.emit == "module") {
    TRY(save_module(program.impl().report.partitioned, options.output));
  } else {
    TRY(save_program(program, model, report, options.output, key));
  }
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, program.outputs(), TRY(program.run(inputs))));
  if (!options.json.empty()) TRY(write_json(options.json, report));
  print_size(options.output, needs);
  return {};
}

}  // namespace

Command add_compile(CLI::App& app) {
  auto options = std::make_shared<CompileOptionsOfTool>();
  CLI::App* command =
      app.add_subcommand("compile", "compile a model, and write the program to a file");
  add_compile_options(*command, *options, kSecondsForPlan);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  add_output_option(*command, *options);
  add_bucket_flags(*command, options->buckets);
  command->add_option("-o", options->output, "the file to write")->required();
  command
      ->add_option("--emit", options->emit,
                   "what to write: an artifact (.collage), a library (.a or .so) with a C header, "
                   "or a module whose kernels are stated (.relay)")
      ->check(CLI::IsMember({"artifact", "library", "module"}));
  command->add_option("--sign", options->signing_key,
                      "a private key (Ed25519, PEM) that signs the artifact");
  return {command, [options] { return compile_to_file(*options); }};
}

}  // namespace collage::tool
