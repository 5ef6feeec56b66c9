#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace collage::log {

void set_verbosity(int level) {
  static const bool installed = [] {
    auto logger = spdlog::stderr_color_mt("collage");
    logger->set_pattern("collage: %^%l%$: %v");
    spdlog::set_default_logger(logger);
    return true;
  }();
  (void)installed;
  spdlog::set_level(level < 0    ? spdlog::level::err
                    : level == 0 ? spdlog::level::warn
                    : level == 1 ? spdlog::level::info
                                 : spdlog::level::debug);
}

}  // namespace collage::log
