#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

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

}  // namespace collage::log
