// Logs lines to stderr. Levels: warnings are always shown, info with -v, debug with -vv; -q leaves
// errors only. Nothing is logged while something is timed. The logger is our own: a program that
// uses the library keeps spdlog's default one for itself.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace spdlog {
class logger;
}

namespace collage::log {

spdlog::logger& logger();

// -1: errors only (-q), 0: warnings (default), 1: info (-v), 2: debug (-vv).
void set_verbosity(int level);

enum class Level { kDebug, kInfo, kWarn };
bool is_shown(Level level);
void write(Level level, std::string_view text);

template <typename... Args>
void log(Level level, fmt::format_string<Args...> text, Args&&... args) {
  if (is_shown(level)) write(level, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  log(Level::kDebug, text, std::forward<Args>(args)...);
}
template <typename... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  log(Level::kInfo, text, std::forward<Args>(args)...);
}
template <typename... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  log(Level::kWarn, text, std::forward<Args>(args)...);
}

}  // namespace collage::log
