#include "help.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/version.h"

namespace collage::tool {

namespace {

struct Example {
  const char *verb, *line, *meaning;
};

constexpr Example kExamples[] = {
    {"run", "collage run resnet50.onnx", "compile with what is measured best here, and run"},
    {"run", "collage run model.onnx --dim batch=8 --inputs image=cat.npy --save-outputs out",
     "a dynamic batch of 8, an input from a file, the outputs to a folder"},
    {"bench", "collage bench model.onnx --compare onnxruntime,openvino --json new.json",
     "latencies beside those of other runtimes, and a report"},
    {"bench", "collage bench model.onnx --roofline --profile trace.json",
     "the time of each kernel, and a trace for Perfetto"},
    {"verify", "collage verify model.onnx --layerwise",
     "compare with the reference; name the first kernel that is wrong"},
    {"partition", "collage partition model.onnx --targets onednn",
     "the partitioned module as text"},
    {"explain", "collage explain model.onnx",
     "all kernels, their runners-up, and what flags would cost"},
    {"explain", "collage explain model.onnx /layer1/Conv",
     "everything considered for that ONNX node"},
    {"explain", "collage explain model.onnx --why-not openvino /layer1/Conv",
     "why the node does not run there"},
    {"view", "collage view model.onnx -o plan.html", "the plan as a page; open it in a browser"},
    {"view", "collage view report.json -o plan.html", "the same from a report"},
    {"diff", "collage diff old.json new.json", "status 7 where the second is slower beyond noise"},
    {"targets", "collage targets", "what this machine offers, and what is missing and why"},
    {"tune", "collage tune *.onnx --effort max", "measure ahead what these models need"},
    {"db", "collage db prune --unused 90", "forget what was not used for three months"},
    {"help", "source <(collage help --completion)", "completion in this bash"},
};

bool is_visible(const CLI::App& command) { return !command.get_group().empty(); }

// "-o,--output FILE" as CLI11 knows it; empty for hidden ones.
std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && !option->get_group().empty()) flags.push_back(option);
  return flags;
}

std::string examples_of(const std::string& verb) {
  std::string text;
  for (const Example& example : kExamples)
    if (verb == example.verb)
      text += fmt::format("  {}\n      {}\n", example.line, example.meaning);
  return text.empty() ? text : "Examples:\n" + text;
}

// Text that roff takes as it is.
std::string roff(const std::string& text) {
  std::string result;
  for (char c : text)
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\n' ? " " : std::string(1, c);
  if (!result.empty() && (result[0] == '.' || result[0] == '\'')) result = "\\&" + result;
  return result;
}

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
    for (const Example& example : kExamples)
      if (verb == example.verb)
        text += fmt::format(".PP\n{}:\n.RS\n.nf\n{}\n.fi\n.RE\n", roff(example.meaning),
                            roff(example.line));
  }
  text +=
      ".SH SETTINGS\nEvery flag can also be set in collage.toml or by a variable: see "
      "docs/command.md.\n";
  return text;
}

std::string completion(const CLI::App& app, const std::vector<Command>& commands) {
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

}  // namespace

Command add_help(CLI::App& app, const std::vector<Command>& commands) {
  struct Arguments {
    std::string verb;
    bool man = false, completion = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("help", "flags and examples of a sub-command");
  command->add_option("VERB", arguments->verb, "a sub-command");
  CLI::Option* man = command->add_flag("--man", arguments->man, "print a manual page");
  command->add_flag("--completion", arguments->completion, "print a completion script for bash")
      ->excludes(man);
  return {command, [arguments, &app, &commands]() -> Status {
            if (arguments->man) {
              fmt::print("{}", manual(app, commands));
              return {};
            }
            if (arguments->completion) {
              fmt::print("{}", completion(app, commands));
              return {};
            }
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
