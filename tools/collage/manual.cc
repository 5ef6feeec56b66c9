#include <fmt/format.h>

#include "collage/version.h"
#include "described.h"

namespace collage::tool {

namespace {

// Text that roff takes as it is.
std::string roff(const std::string& text) {
  std::string result;
  for (char c : text)
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\n' ? " " : std::string(1, c);
  if (!result.empty() && (result[0] == '.' || result[0] == '\'')) result = "\\&" + result;
  return result;
}

}  // namespace

std::string manual(const CLI::App& app, const std::vector<Command>& commands) {
  std::string text = fmt::format(".TH COLLAGE 1 \"\" \"collage {}\"\n.SH NAME\ncollage \\- {}\n",
                                 COLLAGE_VERSION, roff(app.get_description()));
  text += ".SH SYNOPSIS\n.B collage\n.I VERB\n[flags]\n.SH VERBS\n";
  for (const Command& command : commands)
    if (is_visible(*command.app))
      text += fmt::format(".TP\n.B {}\n{}\n", roff(command.app->get_name()),
                          roff(command.app->get_description()));
  for (const Command& command : commands) {
    if (!is_visible(*command.app)) continue;
    const std::string verb = command.app->get_name();
    text +=
        fmt::format(".SH \"COLLAGE {}\"\n{}\n", roff(verb), roff(command.app->get_description()));
    for (const CLI::Option* option : flags_of(*command.app))
      text += fmt::format(".TP\n.B {}\n{}\n", roff(option->get_name(false, true)),
                          roff(option->get_description()));
    for (const Example& example : examples())
      if (verb == example.verb)
        text += fmt::format(".PP\n{}:\n.RS\n.nf\n{}\n.fi\n.RE\n", roff(example.meaning),
                            roff(example.line));
  }
  text +=
      ".SH SETTINGS\nEvery flag can also be set in collage.toml or by a variable: see "
      "docs/command.md.\n";
  return text;
}

}  // namespace collage::tool
