#include "progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"

namespace collage::tool {

namespace {
constexpr double kWorthSaying = 10;  // seconds of work
}  // namespace

ProgressLine::ProgressLine()
    : mode_(!log::is_shown(log::Level::kWarn)  ? Mode::kNone
            : ::isatty(STDERR_FILENO) != 0     ? Mode::kBar
            : log::is_shown(log::Level::kInfo) ? Mode::kPlain
                                               : Mode::kNone) {}

void ProgressLine::begin(std::string_view phase, size_t unknown, size_t total, double seconds) {
  if (mode_ == Mode::kNone || seconds < kWorthSaying) return;
  std::string time =
      seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} minutes", seconds / 60);
  fmt::print(
      stderr,
      "collage: {} {} of {} sub-graphs, about {}; Ctrl-C keeps what is done and goes on with "
      "the best so far\n",
      phase, unknown, total, time);
  std::fflush(stderr);
}

void ProgressLine::update(std::string_view phase, size_t done, size_t total, size_t cached,
                          size_t failed) {
  if (mode_ == Mode::kNone) return;
  Clock::time_point now = Clock::now();
  if (phase_ != phase) {
    phase_ = phase;
    begin_ = now;
    left_ = {};
    last_ = mode_ == Mode::kBar ? Clock::time_point() : now;
  }
  auto interval =
      mode_ == Mode::kBar ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000);
  if (now - last_ < interval) return;
  last_ = now;
  double elapsed = std::chrono::duration<double>(now - begin_).count();
  size_t worked = done > cached ? done - cached : 0;
  std::string left =
      worked > 0 ? fmt::format(", about {:.0f} s left", left_.tell(elapsed, worked, total - done))
                 : "";
  std::string line =
      fmt::format("{} {}/{} ({} known, {} refused){}", phase, done, total, cached, failed, left);
  fmt::print(stderr, "{}collage: {}{}", mode_ == Mode::kBar ? "\r\033[K" : "", line,
             mode_ == Mode::kBar ? "" : "\n");
  std::fflush(stderr);
}

void ProgressLine::finish(std::string_view) {
  if (mode_ == Mode::kBar && !phase_.empty()) fmt::print(stderr, "\r\033[K");
  phase_.clear();
}

}  // namespace collage::tool
