#include <fmt/format.h>

#include "described.h"

namespace collage::tool {

namespace {

// Text within single quotes and within a specification of zsh's _arguments or _describe.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '\\' || c == '[' || c == ']' || c == ':') {
      result += std::string("\\") + c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string fish_quoted(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + result + "'";
}

}  // namespace

std::string bash_completion(const CLI::App& app, const std::vector<Command>& commands) {
  std::string verbs, cases;
  for (const Command& command : commands) {
    if (!is_visible(*command.app)) continue;
    verbs += (verbs.empty() ? "" : " ") + command.app->get_name();
    std::string words;
    for (const auto& parts : {flags_of(*command.app), flags_of(app)})
      for (const CLI::Option* option : parts)
        for (const std::string& name : option->get_lnames()) words += " --" + name;
    for (const CLI::App* nested : command.app->get_subcommands({}))
      words += " " + nested->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.app->get_name(),
                         words.substr(words.empty() ? 0 : 1));
  }
  return fmt::format(R"(_collage() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  [ "${{COMP_WORDS[1]}}" != help ] || words="$words {}"
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _collage collage
)",
                     verbs, cases, verbs);
}

// One specification of _arguments for each name of each flag.
std::string zsh_completion(const CLI::App& app, const std::vector<Command>& commands) {
  std::string verbs, cases;
  for (const Command& command : commands) {
    if (!is_visible(*command.app)) continue;
    verbs += fmt::format("    '{}:{}'\n", command.app->get_name(),
                         zsh_text(command.app->get_description()));
    std::string specifications;
    for (const auto& parts : {flags_of(*command.app), flags_of(app)})
      for (const CLI::Option* option : parts)
        for (const std::string& name : option->get_lnames())
          specifications +=
              fmt::format(" \\\n        '*--{}[{}]{}'", name, zsh_text(option->get_description()),
                          takes_value(*option) ? ":value:_files" : "");
    std::string nested;
    for (const CLI::App* other : command.app->get_subcommands({}))
      nested += " " + other->get_name();
    specifications += nested.empty() ? " \\\n        '*:file:_files'"
                                     : fmt::format(" \\\n        '*:verb:({})'", nested.substr(1));
    cases += fmt::format("    {}) _arguments -s{} ;;\n", command.app->get_name(), specifications);
  }
  return fmt::format(R"(#compdef collage
_collage() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe sub-command verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  case ${{words[1]}} in
{}  esac
}}
if [ "$funcstack[1]" = _collage ]; then _collage "$@"; else compdef _collage collage; fi
)",
                     verbs, cases);
}

std::string fish_completion(const CLI::App& app, const std::vector<Command>& commands) {
  std::string text;
  const auto add = [&](const std::string& when, const CLI::Option& option) {
    for (const std::string& name : option.get_lnames())
      text += fmt::format("complete -c collage{} -l {}{} -d {}\n", when, name,
                          takes_value(option) ? " -r" : "", fish_quoted(option.get_description()));
  };
  for (const CLI::Option* option : flags_of(app)) add("", *option);
  for (const Command& command : commands) {
    if (!is_visible(*command.app)) continue;
    const std::string verb = command.app->get_name();
    text += fmt::format("complete -c collage -f -n __fish_use_subcommand -a {} -d {}\n", verb,
                        fish_quoted(command.app->get_description()));
    const std::string when = fmt::format(" -n '__fish_seen_subcommand_from {}'", verb);
    for (const CLI::Option* option : flags_of(*command.app)) add(when, *option);
    for (const CLI::App* nested : command.app->get_subcommands({}))
      text += fmt::format("complete -c collage{} -a {} -d {}\n", when, nested->get_name(),
                          fish_quoted(nested->get_description()));
  }
  return text;
}

}  // namespace collage::tool
