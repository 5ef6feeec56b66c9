// `collage help VERB`: usage, flags and examples.
#pragma once

#include "options.h"

namespace collage::tool {

// `commands` is read when the command runs, so it may still grow.
Command add_help(CLI::App& app, const std::vector<Command>& commands);

}  // namespace collage::tool
