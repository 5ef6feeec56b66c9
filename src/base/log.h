// Logging for people who watch a run: lines on stderr. Levels: warn is always shown, info with -v,
// debug with -vv; -q leaves errors only. Nothing is logged while something is timed. The logger is
// our own: a program that uses the library keeps spdlog's default one for itself.
#pragma once

#include <spdlog/spdlog.h>

#include <utility>

namespace collage::log {

spdlog::logger& logger();

// -1: errors only (-q), 0: warnings (default), 1: info (-v), 2: debug (-vv).
void set_verbosity(int level);

template <typename... Args>
void debug(spdlog::format_string_t<Args...> text, Args&&... args) {
  logger().debug(text, std::forward<Args>(args)...);
}
template <typename... Args>
void info(spdlog::format_string_t<Args...> text, Args&&... args) {
  logger().info(text, std::forward<Args>(args)...);
}
template <typename... Args>
void warn(spdlog::format_string_t<Args...> text, Args&&... args) {
  logger().warn(text, std::forward<Args>(args)...);
}

}  // namespace collage::log
