// Flags from the environment and from a file, for every sub-command; the command line wins, then
// the environment, then the file.
//
//   COLLAGE_THREADS=2            --threads 2 of every sub-command that has it
//   collage.toml                 in the folder at hand, else $XDG_CONFIG_HOME/collage/collage.toml:
//     threads = 2                of every sub-command that has it
//     targets = ["onednn", "native"]
//     [bench]
//     duration = 10              of `bench` alone
//
// A file in the folder at hand may be somebody else's, put beside the models that they gave away:
// it may not run code, write or touch files. Only flags known to be harmless are taken from it; the
// others from the user's own file or the environment.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::tool {

struct Settings {
  std::vector<std::string> arguments;  // with what is set elsewhere added
  std::string warning;                 // of keys that were not taken; empty where all were
};
// Of arguments without the program's name. kUsage: a file that cannot be read, a key that no
// sub-command knows.
Result<Settings> with_settings(const CLI::App& app, std::vector<std::string> arguments);
// The flags of a parsed sub-command as such a file: those in effect, the others as comments.
std::string dump_settings(const CLI::App& command);

}  // namespace collage::tool
