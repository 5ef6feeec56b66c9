#include "settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/printable.h"

namespace collage::tool {

namespace {

namespace fs = std::filesystem;

const std::string& flag_of(const CLI::Option& option) { return option.get_lnames().front(); }

// Flags that can be set elsewhere; not those that end the command, like --help.
std::vector<const CLI::Option*> settable(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && !option->get_lnames().empty() && flag_of(*option) != "help" &&
        flag_of(*option) != "version" && flag_of(*option) != "dump-config")
      options.push_back(option);
  return options;
}

std::string variable_of(const CLI::Option& option) {
  std::string name = "COLLAGE_";
  for (char c : flag_of(option))
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

bool is_given(const CLI::Option& option, const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    for (const std::string& name : option.get_lnames())
      if (argument == "--" + name || argument.rfind("--" + name + "=", 0) == 0) return true;
    for (const std::string& name : option.get_snames())
      if (argument.rfind("-" + name, 0) == 0 && argument.rfind("--", 0) != 0) return true;
    return false;
  });
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

void add(const CLI::Option& option, const std::string& value, std::vector<std::string>& arguments) {
  if (!is_flag(option)) {
    arguments.push_back("--" + flag_of(option) + "=" + value);
  } else if (value != "0" && value != "false" && !value.empty()) {
    arguments.push_back("--" + flag_of(option));
  }
}

// What a file of the folder at hand may set: how long and how carefully is measured, for which
// shapes, and what is printed of it. Nothing that names a file, a database or a plugin, that
// decides what computes or from which values, how exact results must be or what they are compared
// with, or that keeps a message back. A new flag is not among them until somebody thought about it.
constexpr std::string_view kHarmless[] = {
    "batch",  "deterministic", "dim",        "duration", "effort",   "fresh-costs", "frozen-costs",
    "layers", "layerwise",     "iterations", "memory",   "patience", "progress",    "roofline",
    "search", "shapes",        "streams",    "threads",  "verbose",  "warmup"};

bool is_harmless(const CLI::Option& option) {
  return std::find(std::begin(kHarmless), std::end(kHarmless), flag_of(option)) !=
         std::end(kHarmless);
}

constexpr const char* kInThisFolder = "collage.toml";

// The user's own.
fs::path own_file() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  fs::path folder = config != nullptr && *config != 0 ? fs::path(config)
                    : home != nullptr                 ? fs::path(home) / ".config"
                                                      : fs::path();
  return folder.empty() ? folder : folder / "collage" / "collage.toml";
}

Result<std::string> text_of(const toml::node& node, const fs::path& file, const std::string& key) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto number = node.value_exact<int64_t>()) return std::to_string(*number);
  if (auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (auto truth = node.value_exact<bool>()) return std::string(*truth ? "true" : "false");
  return usage_error("{}: {}: is no text, number, truth value or list of them", file.string(), key);
}

Result<std::vector<std::string>> values_of(const toml::node& node, const fs::path& file,
                                           const std::string& key) {
  std::vector<std::string> values;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) values.push_back(TRY(text_of(item, file, key)));
  } else {
    values.push_back(TRY(text_of(node, file, key)));
  }
  return values;
}

std::string flag_named(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& key) {
  for (const CLI::Option* option : settable(command))
    if (flag_of(*option) == flag_named(key)) return option;
  return nullptr;
}

// Every key must be a flag of its sub-command or, outside tables, of some sub-command.
Status check_keys(const CLI::App& app, const toml::table& table, const fs::path& file) {
  for (const auto& [name, node] : table) {
    std::string key(name.str());
    const std::vector<const CLI::App*> verbs =
        app.get_subcommands([](const CLI::App*) { return true; });
    if (const toml::table* own = node.as_table()) {
      auto verb = std::find_if(verbs.begin(), verbs.end(),
                               [&](const CLI::App* v) { return v->get_name() == key; });
      if (verb == verbs.end())
        return usage_error("{}: there is no sub-command '{}'", file.string(), key);
      for (const auto& [inner, value] : *own)
        if (find_option(**verb, std::string(inner.str())) == nullptr)
          return usage_error("{}: {} has no flag --{}", file.string(), key, inner.str());
    } else if (find_option(app, key) == nullptr &&
               std::none_of(verbs.begin(), verbs.end(),
                            [&](const CLI::App* v) { return find_option(*v, key) != nullptr; })) {
      return usage_error("{}: no sub-command has a flag --{}", file.string(), key);
    }
  }
  return {};
}

// An empty table where there is no such file.
Result<toml::table> read_settings(const CLI::App& app, const fs::path& file) {
  toml::table table;
  std::error_code ec;
  if (file.empty() || !fs::is_regular_file(file, ec)) return table;
  const std::string text = TRY(read_file(file));
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& e) {
    return usage_error("{}: line {}: {}", file.string(), e.source().begin.line, e.description());
  }
  TRY(check_keys(app, table, file));
  return table;
}

// What it says of the sub-command's flag; null where it says nothing.
const toml::node* find_setting(const toml::table& table, const CLI::App& command,
                               const CLI::Option& option) {
  const auto lookup = [&](const toml::table& from) -> const toml::node* {
    for (const auto& [key, node] : from)
      if (!node.is_table() && flag_named(std::string(key.str())) == flag_of(option)) return &node;
    return nullptr;
  };
  const toml::table* own = table[command.get_name()].as_table();
  const toml::node* node = own != nullptr ? lookup(*own) : nullptr;
  return node != nullptr ? node : lookup(table);
}

std::string notice(const std::string& taken, const std::string& refused) {
  std::string text;
  if (!taken.empty()) text = fmt::format("{} in the folder at hand sets {}", kInThisFolder, taken);
  if (!refused.empty())
    text += fmt::format("{}not taken from {}: {}; set it in your own file or give the flag",
                        text.empty() ? "" : "; ",
                        text.empty() ? std::string(kInThisFolder) + " in the folder at hand" : "it",
                        refused);
  return text;
}

}  // namespace

Result<Settings> with_settings(const CLI::App& app, std::vector<std::string> arguments) {
  const CLI::App* command = nullptr;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!arguments.empty() && verb->get_name() == arguments[0]) command = verb;
  // What the command calls for itself takes no settings.
  if (command == nullptr || command->get_group().empty()) return Settings{arguments, ""};

  const fs::path mine = own_file();
  const toml::table here = TRY(read_settings(app, kInThisFolder)),
                    own = TRY(read_settings(app, mine));
  std::string taken, refused;
  const std::vector<std::string> given = arguments;
  std::vector<const CLI::Option*> options = settable(*command);
  for (const CLI::Option* option : settable(app)) options.push_back(option);
  for (const CLI::Option* option : options) {
    const auto& others = option->get_excludes();
    if (is_given(*option, given) ||
        std::any_of(others.begin(), others.end(),
                    [&](const CLI::Option* other) { return is_given(*other, given); }))
      continue;
    if (const char* value = std::getenv(variable_of(*option).c_str())) {
      add(*option, value, arguments);
      continue;
    }
    const std::string& flag = flag_of(*option);
    if (const toml::node* node = find_setting(here, *command, *option); node != nullptr) {
      std::string& named = is_harmless(*option) ? taken : refused;
      named += (named.empty() ? "" : ", ") + flag;
      if (is_harmless(*option)) {
        const std::vector<std::string> values = TRY(values_of(*node, kInThisFolder, flag));
        named += fmt::format(" = {}", fmt::join(values, ", "));
        for (const std::string& value : values) add(*option, value, arguments);
        continue;
      }
    }
    if (const toml::node* node = find_setting(own, *command, *option); node != nullptr)
      for (const std::string& value : TRY(values_of(*node, mine, flag)))
        add(*option, value, arguments);
  }
  return Settings{std::move(arguments), printable(notice(taken, refused), 2000)};
}

std::string dump_settings(const CLI::App& command) {
  std::string text = fmt::format("[{}]\n", command.get_name());
  for (const CLI::Option* option : settable(command)) {
    toml::array values;
    for (const std::string& value : option->results()) values.push_back(value);
    std::stringstream line;
    if (values.empty()) {
      line << "# " << flag_of(*option) << " =";
    } else if (is_flag(*option)) {
      line << flag_of(*option) << " = true";
    } else if (option->get_items_expected_max() > 1) {
      line << flag_of(*option) << " = " << values;
    } else {
      line << flag_of(*option) << " = " << toml::value<std::string>(option->results().front());
    }
    text += line.str() + "\n";
  }
  return text;
}

}  // namespace collage::tool
