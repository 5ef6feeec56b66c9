// The command `collage`: one file a sub-command. Errors are one line on stderr; the exit status is
// the error's code (collage/result.h).

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.h"
#include "base/no_exceptions.h"
#include "base/printable.h"
#include "collage/version.h"
#include "help.h"

namespace {

// CLI11's messages may have several lines, and names from models may hold anything; what a terminal
// gets is one line.
std::string one_line(std::string text) {
  constexpr size_t kLongest = 8000;  // bytes
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return collage::printable(text, kLongest);
}

std::string visible_names(const std::vector<collage::tool::Command>& commands) {
  std::string names;
  for (const collage::tool::Command& command : commands)
    if (!command.app->get_group().empty())
      names += (names.empty() ? "" : ", ") + command.app->get_name();
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace collage;
  using namespace collage::tool;
  CLI::App app(
      "Collage: runs a trained model with the backends that were measured fastest for each part of "
      "it",
      "collage");
  app.set_version_flag("--version", std::string("collage ") + COLLAGE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  int verbose = 0;
  bool quiet = false;
  app.add_flag("-v", verbose,
               "more messages, progress too where stderr is no terminal; twice for even more");
  app.add_flag("-q", quiet, "errors only");
  std::vector<Command> commands = {
      add_run(app),  add_bench(app),   add_verify(app), add_partition(app), add_targets(app),
      add_tune(app), add_inspect(app), add_db(app),     add_diff(app),      add_explain(app),
      add_view(app), add_compile(app), add_fleet(app),  add_worker(app)};
  commands.push_back(add_help(app, commands));
  if (argc > 1 && argv[1][0] != '-' &&
      std::none_of(commands.begin(), commands.end(),
                   [&](const Command& command) { return command.app->get_name() == argv[1]; })) {
    // CLI11 would only say that a sub-command is missing.
    fmt::print(stderr, "collage: unknown sub-command '{}': there are {} (see collage --help)\n",
               printable(argv[1]), visible_names(commands));
    return static_cast<int>(ErrorCode::kUsage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "collage: {} (see collage --help)\n", one_line(e.what()));
    return static_cast<int>(ErrorCode::kUsage);
  }
  log::set_verbosity(quiet ? -1 : verbose);
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    Status status = without_exceptions(command.run);
    if (std::fflush(stdout) != 0 && status.ok())
      status = internal_error("cannot write the results: {}", std::strerror(errno));
    if (!status.ok()) fmt::print(stderr, "collage: {}\n", one_line(status.to_string()));
    std::fflush(nullptr);
    // Vendor libraries may crash in their destructors; everything of ours is already on disk.
    std::_Exit(status.exit_code());
  }
  return static_cast<int>(ErrorCode::kUsage);
}
