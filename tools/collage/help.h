// What the command says of itself, all from one source (described.h).
//
//   collage help VERB                  usage, flags and examples
//   collage help --man                 a manual page (roff)
//   collage help --completion [SHELL]  a script; `source <(collage help --completion)`
#pragma once

#include "options.h"

namespace collage::tool {

// `commands` is read when the command runs, so it may still grow.
Command add_help(CLI::App& app, const std::vector<Command>& commands);

}  // namespace collage::tool
