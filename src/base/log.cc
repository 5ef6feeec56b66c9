#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace collage::log {

spdlog::logger& logger() {
  static spdlog::logger& instance = *[] {
    // Never destroyed: what ends last may still want to say something.
    auto* made =
        new spdlog::logger("collage", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("collage: %^%l%$: %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

void set_verbosity(int level) {
  logger().set_level(level < 0    ? spdlog::level::err
                     : level == 0 ? spdlog::level::warn
                     : level == 1 ? spdlog::level::info
                                  : spdlog::level::debug);
}

namespace {
spdlog::level::level_enum level_of(Level level) {
  return level == Level::kDebug  ? spdlog::level::debug
         : level == Level::kInfo ? spdlog::level::info
                                 : spdlog::level::warn;
}
}  // namespace

bool is_shown(Level level) { return logger().should_log(level_of(level)); }

void write(Level level, std::string_view text) { logger().log(level_of(level), text); }

}  // namespace collage::log
