#include "help.h"

#include <fmt/format.h>

#include "described.h"

namespace collage::tool {

namespace {

std::string examples_of(const std::string& verb) {
  std::string text;
  for (const Example& example : examples())
    if (verb == example.verb)
      text += fmt::format("  {}\n      {}\n", example.line, example.meaning);
  return text.empty() ? text : "Examples:\n" + text;
}

Status print_completion(const std::string& shell, const CLI::App& app,
                        const std::vector<Command>& commands) {
  constexpr const char* kNoValue = "true";  // what CLI11 makes of a value that is left out
  if (shell.empty() || shell == kNoValue || shell == "bash") {
    fmt::print("{}", bash_completion(app, commands));
  } else if (shell == "zsh") {
    fmt::print("{}", zsh_completion(app, commands));
  } else if (shell == "fish") {
    fmt::print("{}", fish_completion(app, commands));
  } else {
    return usage_error("--completion {}: there is bash, zsh and fish", shell);
  }
  return {};
}

}  // namespace

Command add_help(CLI::App& app, const std::vector<Command>& commands) {
  struct Arguments {
    std::string verb;
    bool man = false;
    std::string completion;  // a shell
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("help", "flags and examples of a sub-command");
  command->add_option("VERB", arguments->verb, "a sub-command");
  CLI::Option* man = command->add_flag("--man", arguments->man, "print a manual page");
  CLI::Option* completion =
      command
          ->add_option("--completion", arguments->completion,
                       "print a completion script for bash (default), zsh or fish")
          ->expected(0, 1)
          ->excludes(man);
  return {command, [arguments, completion, &app, &commands]() -> Status {
            if (arguments->man) {
              fmt::print("{}", manual(app, commands));
              return {};
            }
            if (completion->count() > 0)
              return print_completion(arguments->completion, app, commands);
            if (arguments->verb.empty()) {
              fmt::print("{}\n\nSubcommands:\n", app.get_description());
              for (const Command& other : commands)
                if (is_visible(*other.app))
                  fmt::print("  {:<10} {}\n", other.app->get_name(), other.app->get_description());
              fmt::print("\ncollage help VERB: its flags, with examples\n");
              return {};
            }
            for (const Command& other : commands)
              if (is_visible(*other.app) && other.app->get_name() == arguments->verb) {
                fmt::print("{}\n{}", other.app->help(), examples_of(arguments->verb));
                return {};
              }
            return usage_error("help: there is no sub-command '{}'", arguments->verb);
          }};
}

}  // namespace collage::tool
