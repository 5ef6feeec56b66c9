#include "options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "artifact.h"
#include "backend/targets/plugins.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/name_supply.h"
#include "base/output_file.h"
#include "base/percent.h"
#include "base/stopwatch.h"
#include "measure/effort.h"
#include "progress_line.h"
#include "report/host_share.h"
#include "runtime/npy.h"
#include "verify/synthetic.h"

namespace collage::tool {

namespace {

// "name=file", split at the first '=' with a model's input before it: a file's name may hold '='
// too.
Result<std::pair<size_t, std::string>> split_input(const std::string& text,
                                                   const std::vector<TensorInfo>& infos) {
  for (size_t equals = text.find('='); equals != std::string::npos;
       equals = text.find('=', equals + 1))
    for (size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == text.substr(0, equals) && equals + 1 < text.size())
        return std::make_pair(i, text.substr(equals + 1));
  auto [name, file] = TRY(split_assignment("--inputs", text));
  std::string known;
  for (const TensorInfo& info : infos)
    known += fmt::format("{}{} {} {}", known.empty() ? "" : ", ", info.name, dtype_name(info.dtype),
                         shape_to_string(info.shape));
  return usage_error("--inputs {}: the model has no input '{}'; it has {}", text, name, known);
}

}  // namespace

// ONNX names may hold anything, '=' included.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& flag,
                                                             const std::string& text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return usage_error("{} {}: expected NAME=VALUE", flag, text);
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<int64_t> parse_extent(const std::string& flag, const std::string& whole,
                             const std::string& text) {
  bool digits = !text.empty() && text.size() < 16 &&
                text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) return usage_error("{} {}: '{}' is not a dimension", flag, whole, text);
  return std::stoll(text);
}

Result<LoadOptions> load_options(const SharedOptions& options) {
  LoadOptions result;
  for (const std::string& text : options.shapes) {
    auto [name, value] = TRY(split_assignment("--shapes", text));
    Shape shape;
    std::istringstream parts(value);
    for (std::string part; std::getline(parts, part, 'x');)
      shape.push_back(TRY(parse_extent("--shapes", text, part)));
    result.shapes[name] = std::move(shape);
  }
  for (const std::string& text : options.dims) {
    auto [name, value] = TRY(split_assignment("--dim", text));
    result.dims[name] = TRY(parse_extent("--dim", text, value));
  }
  for (const std::string& text : options.constants) {
    auto [name, file] = TRY(split_assignment("--constant", text));
    result.constants[name] = TRY(read_npy(file));
  }
  result.data_roots.assign(options.data_roots.begin(), options.data_roots.end());
  return result;
}

Status check_writable_file(const std::string& flag, const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return {};
  std::error_code ec;
  if (fs::is_directory(path, ec)) return usage_error("{} {}: is a folder, not a file", flag, path);
  fs::path folder = fs::absolute(path, ec).parent_path();
  if (!fs::is_directory(folder, ec))
    return usage_error("{} {}: there is no folder {}", flag, path,
                       fs::path(path).parent_path().string());
  const Status writable = OutputFile::check(path);
  return writable.ok() ? writable : usage_error("{} {}", flag, writable.message());
}

Result<std::string> read_key(const std::string& flag, const std::string& file) {
  Result<std::string> text = read_file(file);
  if (!text) return usage_error("{} {}", flag, text.status().message());
  return text;
}

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(text, value) && value > 0 && value < 1e9;
        return number ? std::string() : text + " is not a number above 0";
      },
      "NUMBER", "positive");
}

void add_model_option(CLI::App& command, SharedOptions& options) {
  command
      .add_option(
          "MODEL", options.model,
          "an ONNX file, Relay text (.relay), script (.script, .py), or an artifact (.collage)")
      ->required();
}

void add_compile_options(CLI::App& command, SharedOptions& options, std::optional<double> budget) {
  add_model_option(command, options);
  add_compile_flags(command, options, budget);
}

void add_target_flags(CLI::App& command, SharedOptions& options) {
  command
      .add_option(
          "--targets", options.targets,
          "backends to use, comma separated (default: all), perhaps with options: 'amx -parts=3' "
          "(sums of six products), 'native -symbolic=only' (kernels that serve all shapes), "
          "'opencl -device=opencl:1', 'onednn -rules=FILE' (docs/partitioning.md)")
      ->delimiter(',');
  command.add_option("--devices", options.devices,
                     "cpu:0,gpu:0: the devices to use, in order of preference");
  command.add_option("--exclude", options.exclude, "leave out TARGET, or TARGET:OPERATOR")
      ->delimiter(',');
  command.add_option("--pin", options.pin, "'REGEX=TARGET': nodes whose name matches run there")
      ->allow_extra_args(false);
  command
      .add_option("--memory", options.memory,
                  "DEVICE=BYTES: the most that the program may keep on a device (gpu:0=500M)")
      ->allow_extra_args(false);
  CLI::Option* machine =
      command.add_option("--for", options.machine,
                         "this: of an artifact, compile the model inside it for this machine. "
                         "`compile` also takes the "
                         "fingerprint of another machine, whose costs are in the database");
  if (command.get_name() != "compile") machine->check(CLI::IsMember({"this"}));
  command.add_option("--require-signature", options.required_signature,
                     "a public key (Ed25519, PEM): refuse artifacts that its owner did not sign");
  command
      .add_option("--threads", options.threads,
                  "one budget for every library (default: this process's cores)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--shapes", options.shapes,
                  "NAME=1x3x224x224, for inputs with dynamic dimensions")
      ->allow_extra_args(false);
  command.add_option("--dim", options.dims, "NAME=8, for a symbolic dimension")
      ->allow_extra_args(false);
  command
      .add_option(
          "--constant", options.constants,
          "NAME=FILE.npy: the value of an input that decides shapes; it is an input no more")
      ->allow_extra_args(false);
  command
      .add_option("--data-root", options.data_roots,
                  "a folder that links of external data may lead to, besides the model's own")
      ->allow_extra_args(false);
  command.add_option("--plugin", options.plugins, "a shared library with a backend of its own")
      ->allow_extra_args(false);
  command
      .add_option("--max-error", options.max_error,
                  "no output errs by more than this part of its largest value (1e-2); kernels may "
                  "compute in bfloat16 within that")
      ->check(CLI::Range(1e-6, 1.0));
}

void add_compile_flags(CLI::App& command, SharedOptions& options, std::optional<double> budget) {
  options.budget_seconds = budget;
  add_target_flags(command, options);
  command.add_option(
      "--db", options.database,
      "the cost database, a file or postgresql://... (default: in the cache folder)");
  command.add_flag("--frozen-costs", options.frozen_costs, "fail instead of measuring");
  CLI::Option* effort = command
                            .add_option("--effort", options.given_effort,
                                        "measures for as long as it takes, with that care" +
                                            std::string(budget ? "" : " (default: default)"))
                            ->check(CLI::IsMember({"fast", "default", "max"}));
  command
      .add_option("--budget", options.budget_seconds,
                  "seconds to measure for, after a first answer" +
                      (budget ? fmt::format(" (default: {:g})", *budget) : std::string()))
      ->check(CLI::Range(0.0, 1e6))
      ->excludes(effort);
  command
      .add_option("--accuracy", options.accuracy,
                  "strict leaves out algorithms with larger rounding errors, and kernels that "
                  "may lose NaN or give other bits when run again")
      ->check(CLI::IsMember({"default", "strict"}));
}

void add_input_options(CLI::App& command, SharedOptions& options) {
  command
      .add_option("--inputs", options.inputs,
                  "NAME=FILE.npy (default: random, the same in every run)")
      ->allow_extra_args(false);
  command.add_option("--json", options.json, "write the report here");
}

void add_output_option(CLI::App& command, SharedOptions& options) {
  command.add_option("--save-outputs", options.save_outputs,
                     "write each output as DIR/POSITION_NAME.npy");
}

Status check_destinations(const SharedOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ec;
  TRY(check_writable_file("--json", options.json));
  if (!options.save_outputs.empty()) {
    fs::path folder = fs::absolute(options.save_outputs, ec);
    while (!fs::exists(folder, ec) && folder.has_relative_path()) folder = folder.parent_path();
    if (!fs::is_directory(folder, ec))
      return usage_error("--save-outputs {}: {} is not a folder", options.save_outputs,
                         folder.filename().string());
    if (::access(folder.c_str(), W_OK) != 0)
      return usage_error("--save-outputs {}: {}", options.save_outputs, std::strerror(errno));
  }
  return {};
}

void add_config_option(CLI::App& command, SharedOptions& options) {
  command
      .add_option("--config", options.config,
                  "targets, rules and costs from this JSON file (docs/partitioning.md)")
      ->excludes(command.get_option("--targets"));
}

Result<Model> load(const SharedOptions& options) {
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  LoadOptions given = TRY(load_options(options));
  TRY(check_destinations(options));
  if (is_artifact(options.model)) {
    if (!given.shapes.empty() || !given.dims.empty() || !given.constants.empty())
      return usage_error("{}: shapes are those of the model inside it and cannot be given",
                         options.model);
    return load_embedded(options);
  }
  return load_model(options.model, given);
}

int thread_count(const SharedOptions& options) {
  return options.threads > 0 ? options.threads : ThreadTeam::available_cores();
}

Result<ProgramOptions> program_options(const SharedOptions& options) {
  ProgramOptions program = options;
  if (!options.given_effort.empty()) {
    program.effort = TRY(parse_effort(options.given_effort));
    program.budget_seconds.reset();
  } else if (program.budget_seconds) {
    program.effort = Effort::kFast;
  }
  program.strict_accuracy = options.accuracy == "strict";
  return program;
}

namespace {

// A plan that leaves much to the host is slow for a reason that no figure of it shows.
void warn_of_host_share(const CompileReport& report) {
  constexpr double kTolerated = 0.01;
  const HostShare share = host_share(report);
  if (share.share > kTolerated && !share.alone)
    log::warn(
        "{} of the arithmetic runs on {}, which is slow, since no other backend takes it: {} "
        "(collage inspect says why)",
        percent_text(share.share), share.host, share.operators_text());
}

}  // namespace

Result<Program> compile(const Model& model, const SharedOptions& options, double* seconds,
                        const std::vector<Tensor>& inputs) {
  ProgramOptions program = TRY(program_options(options));
  if (!options.inputs.empty() && !inputs.empty()) program.check_inputs = {inputs};
  ProgressLine progress;
  InterruptScope interrupts;
  const Stopwatch watch;
  Result<Program> result = compile_model(model, program, &progress);
  if (result) warn_of_host_share(result->impl().report);
  *seconds = watch.seconds() + model.impl().import_seconds + model.impl().simplify_seconds;
  if (interrupted() && result)
    fmt::print(stderr,
               "collage: interrupted: what was measured is kept; this is the best so far\n");
  return result;
}

Result<std::vector<Tensor>> make_inputs(const Model& model, const SharedOptions& options) {
  std::vector<Tensor> tensors = TRY(synthetic_inputs(model.impl().module.main(), kInputSeed));
  const std::vector<TensorInfo>& infos = model.inputs();
  for (const std::string& text : options.inputs) {
    auto [index, file] = TRY(split_input(text, infos));
    const TensorInfo& info = infos[index];
    Tensor tensor = TRY(read_npy(file));
    if (tensor.shape() != info.shape || tensor.dtype() != info.dtype)
      return bad_model("--inputs {}: input '{}' is {} {}, the file holds {} {}", text, info.name,
                       dtype_name(info.dtype), shape_to_string(info.shape),
                       dtype_name(tensor.dtype()), shape_to_string(tensor.shape()));
    tensors[index] = std::move(tensor);
  }
  return tensors;
}

Status save_tensors(const std::string& folder, const std::vector<TensorInfo>& infos,
                    const std::vector<Tensor>& tensors) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) return internal_error("{}: {}", folder, ec.message());
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string safe;
    for (char c : infos[i].name)
      safe += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
    TRY(write_npy(
        std::filesystem::path(folder) / (std::to_string(i) + "_" + safe.substr(0, 100) + ".npy"),
        tensors[i]));
  }
  return {};
}

Result<std::vector<Tensor>> load_tensors(const std::string& flag, const std::string& folder,
                                         size_t count) {
  std::vector<Tensor> tensors(count);
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    std::string name = entry.path().filename().string();
    size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || digits > 6 ||
        entry.path().extension() != ".npy")
      continue;
    size_t position = std::stoul(name.substr(0, digits));
    if (position < count) tensors[position] = TRY(read_npy(entry.path()));
  }
  if (ec) return usage_error("{} {}: {}", flag, folder, ec.message());
  for (size_t i = 0; i < count; ++i)
    if (!tensors[i].defined())
      return usage_error("{} {}: there is no file {}_….npy for output {}", flag, folder, i, i);
  return tensors;
}

Status write_json(const std::string& path, const nlohmann::json& value) {
  return write_file_atomically(
      path, value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace collage::tool
