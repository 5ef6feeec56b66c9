// Logging for people who watch a run: spdlog on stderr. Levels: warn is always shown, info with -v,
// debug with -vv; -q leaves errors only. Nothing is logged while something is timed.
#pragma once

#include <spdlog/spdlog.h>

namespace collage::log {

using spdlog::debug;
using spdlog::info;
using spdlog::warn;

// -1: errors only (-q), 0: warnings (default), 1: info (-v), 2: debug (-vv).
void set_verbosity(int level);

}  // namespace collage::log
