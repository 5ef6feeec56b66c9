// Flags from the environment and from files, for every sub-command; the command line wins, then
// the environment, then the file in the folder at hand, then the user's own.
//
//   COLLAGE_THREADS=2            --threads 2 of every sub-command that has it
//   collage.toml                 in the folder at hand, and in $XDG_CONFIG_HOME/collage:
//     threads = 2                of every sub-command that has it
//     shapes = ["x=1x4", "y=1x4"]
//     [bench]
//     duration = 10              of `bench` alone
//
// A file in the folder at hand may be somebody else's, put beside the models that they gave away:
// it may not run code, write or touch files, nor weaken what is computed or checked. Only flags
// known to be harmless are taken from it, and what it set is said; the others are taken from the
// user's own file or the environment.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::tool {

struct Settings {
  std::vector<std::string> arguments;  // with what is set elsewhere added
  std::string
      notice;  // what the file of the folder at hand set, and was not let set; "" if nothing
};
// Of arguments without the program's name. kUsage: a file that cannot be read, a key that no
// sub-command knows.
Result<Settings> with_settings(const CLI::App& app, std::vector<std::string> arguments);
// The flags of a parsed sub-command as such a file: those in effect, the others as comments.
std::string dump_settings(const CLI::App& command);

}  // namespace collage::tool
