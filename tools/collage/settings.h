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
// A file in a folder that somebody else filled must not run code: `plugin` is not taken from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::tool {

// The arguments (without the program's name) with what is set elsewhere added. kUsage: a file that
// cannot be read, a key that no sub-command knows.
Result<std::vector<std::string>> with_settings(const CLI::App& app,
                                               std::vector<std::string> arguments);
// The flags of a parsed sub-command as such a file: those in effect, the others as comments.
std::string dump_settings(const CLI::App& command);

}  // namespace collage::tool
