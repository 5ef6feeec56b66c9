// Flags that several sub-commands share, and their values.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"

namespace collage::tool {

constexpr uint64_t kInputSeed = 1;       // of random inputs
constexpr int kInterruptedStatus = 130;  // as shells report SIGINT

// Flags that are options of a compilation set these.
struct SharedOptions : ProgramOptions {
  std::string model;
  std::vector<std::string> shapes, dims, constants, inputs, plugins, data_roots;
  std::string accuracy = "default", given_effort, json, save_outputs, required_signature;
  // What is compiled for: "", "this", of an artifact's model, or another's fingerprint (--for).
  std::string machine;
};

// Seconds that commands whose program stays measure for, unless the user says how long.
constexpr double kSecondsForPlan = 60;

// Adds the model argument and the flags that decide how it is compiled. `budget`: the seconds of
// measuring unless the user says how long; none: as long as it takes.
void add_compile_options(CLI::App& command, SharedOptions& options,
                         std::optional<double> budget = {});
void add_model_option(CLI::App& command, SharedOptions& options);
// Adds flags about backends, what they may take, and the shapes of the model.
void add_target_flags(CLI::App& command, SharedOptions& options);
// Adds those, and flags about costs: all but the model argument.
void add_compile_flags(CLI::App& command, SharedOptions& options,
                       std::optional<double> budget = {});
void add_input_options(CLI::App& command, SharedOptions& options);
void add_output_option(CLI::App& command, SharedOptions& options);
// Adds `--config`, for the commands that partition.
void add_config_option(CLI::App& command, SharedOptions& options);

// Refuses numbers that are not positive, with a readable message.
CLI::Validator positive_number();

// Reads a file that holds a key.
Result<std::string> read_key(const std::string& flag, const std::string& file);
// Refuses a file that could not be written, before the work whose result it shall hold; "" is none.
Status check_writable_file(const std::string& flag, const std::string& path);
// Refuses a report or a folder that could not be written: compiling may take minutes.
Status check_destinations(const SharedOptions& options);

// Splits "NAME=VALUE" at the last '='.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& flag,
                                                             const std::string& text);
// Parses a dimension's size; `whole` is the flag's value, for the message.
Result<int64_t> parse_extent(const std::string& flag, const std::string& whole,
                             const std::string& text);

Result<LoadOptions> load_options(const SharedOptions& options);
// Reads the model. Fails before any work is done if --json or --save-outputs could not be written.
Result<Model> load(const SharedOptions& options);
Result<ProgramOptions> program_options(const SharedOptions& options);
// Compiles with progress on stderr. If --inputs gives some, the program is checked with `inputs`
// too.
Result<Program> compile(const Model& model, const SharedOptions& options, double* seconds,
                        const std::vector<Tensor>& inputs = {});
int thread_count(const SharedOptions& options);
// Returns one tensor an input: from --inputs if given, else seeded random.
Result<std::vector<Tensor>> make_inputs(const Model& model, const SharedOptions& options);
// Writes DIR/0_name.npy …; creates the folder.
Status save_tensors(const std::string& folder, const std::vector<TensorInfo>& infos,
                    const std::vector<Tensor>& tensors);
// Reads DIR/0_….npy …, one an output by position; `flag` names the folder in errors.
Result<std::vector<Tensor>> load_tensors(const std::string& flag, const std::string& folder,
                                         size_t count);
Status write_json(const std::string& path, const nlohmann::json& value);

// A sub-command: its name, its description, its flags, and its function (exit status by Status).
struct Command {
  CLI::App* app;
  std::function<Status()> run;
};
Command add_run(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_partition(CLI::App& app);
Command add_targets(CLI::App& app);
Command add_tune(CLI::App& app);
Command add_view(CLI::App& app);
Command add_compile(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_db(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_explain(CLI::App& app);
Command add_fleet(CLI::App& app);
Command add_worker(CLI::App& app);

}  // namespace collage::tool
