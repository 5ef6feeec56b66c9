// Prints progress on stderr: a bar on a terminal, elsewhere a line every ten seconds with -v;
// nothing with -q.
#pragma once

#include <chrono>
#include <string>

#include "base/progress.h"
#include "base/time_left.h"

namespace collage::tool {

class ProgressLine : public Progress {
 public:
  ProgressLine();
  void begin(std::string_view phase, size_t unknown, size_t total, double seconds) override;
  void update(std::string_view phase, size_t done, size_t total, size_t cached,
              size_t failed) override;
  void finish(std::string_view phase) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Mode { kBar, kPlain, kNone } mode_;
  std::string phase_;
  Clock::time_point begin_, last_;
  TimeLeft left_;  // of the phase
};

}  // namespace collage::tool
