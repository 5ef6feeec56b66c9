// What users configure: the partition configuration (JSON, with patterns inside), and collage.toml.
#include "partition/config.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "case_file.h"
#include "collage/settings.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "fuzz/mutate_text.h"
#include "measure/task.h"
#include "targets/backends.h"
#include "targets/targets.h"
#include "test_paths.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

std::vector<std::string> config_seeds() {
  std::vector<std::string> texts;
  for (const auto& file : std::filesystem::directory_iterator(std::string(COLLAGE_TESTS_DIR) +
                                                              "/compiler/partition_cases")) {
    std::istringstream lines(read_cases(file.path()).head);
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find('{'); at != std::string::npos)
        if (parse_config(line.substr(at), "config.json").ok()) texts.push_back(line.substr(at));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

Outcome run_config(const std::string& input) {
  const Result<PartitionConfig> config = parse_config(input, "config.json");
  if (config.ok()) {
    const auto targets = configured_targets(*config, {});
    if (!targets.ok()) {
      EXPECT_FALSE(targets.status().message().empty());
    }
    return Outcome::kAccepted;
  }
  EXPECT_EQ(config.status().code(), ErrorCode::kUsage) << config.status().to_string();
  return parse_json(input).is_null() ? Outcome::kNoSyntax : Outcome::kRefused;
}

const std::vector<std::string>& settings_seeds() {
  static const std::vector<std::string> texts = {
      "threads = 2\ntargets = [\"onednn\", \"native\"]\n[bench]\nduration = 10\ncold = true\n",
      "# none\nduration = 1.5\n\n[run]\ntargets = \"native\"\njson = \"a.json\"\n",
      "threads = 0x10\ncold = false\n[bench]\ntargets = [\n  \"reference\", # the host\n  "
      "'native'\n]\nduration = 1e3\n"};
  return texts;
}

// A few flags of every kind, as the command has them.
struct Command {
  Command() {
    for (const char* name : {"run", "bench"}) {
      CLI::App& verb = *app.add_subcommand(name);
      verb.add_option("--threads", threads);
      verb.add_option("--targets", targets)->delimiter(',');
      verb.add_option("--duration", duration);
      verb.add_option("--json", file);
      verb.add_flag("--cold", cold);
    }
  }
  CLI::App app;
  int threads = 0;
  double duration = 0;
  bool cold = false;
  std::string file;
  std::vector<std::string> targets;
};

Outcome run_settings(const std::string& input) {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path made = std::filesystem::path(scratch_folder()) / "config";
    std::filesystem::create_directories(made / "collage");
    setenv("XDG_CONFIG_HOME", made.c_str(), 1);
    return made;
  }();
  // The user's own, and one in the folder at hand.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const std::shared_ptr<void> back(nullptr, [&](void*) { std::filesystem::current_path(before); });
  std::ofstream(folder / "collage" / "collage.toml", std::ios::binary) << input;
  std::ofstream(folder / "collage.toml", std::ios::binary) << input;
  Command command;
  for (const char* name : {"run", "bench"}) {
    const auto arguments = tool::with_settings(command.app, {name, "--threads=1"});
    if (!arguments.ok()) {
      EXPECT_EQ(arguments.status().code(), ErrorCode::kUsage);
      return arguments.status().message().find(": line ") != std::string::npos ? Outcome::kNoSyntax
                                                                               : Outcome::kRefused;
    }
    std::vector<std::string> reversed(arguments->arguments.rbegin(), arguments->arguments.rend());
    try {
      command.app.parse(std::move(reversed));
      (void)tool::dump_settings(*command.app.get_subcommand(name));
    } catch (const CLI::ParseError&) {  // as the command does
    }
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget partition_config() {
  register_all();
  const std::vector<std::string> texts = config_seeds();
  std::vector<json> values;
  for (const std::string& text : texts) values.push_back(json::parse(text));
  return {"partition_config", texts,
          [values, mutator = TextMutator(texts)](Random& random) {
            // Patterns are a language of their own.
            if (random.one_in(3)) return mutator.make(random);
            return changed_json(random.pick(values), random);
          },
          run_config};
}

FuzzTarget settings() {
  return {
      "settings", settings_seeds(),
      [mutator = TextMutator(settings_seeds())](Random& random) { return mutator.make(random); },
      run_settings};
}

}  // namespace collage::fuzz
