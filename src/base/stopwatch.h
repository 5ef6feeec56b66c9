// Elapsed seconds on the steady clock.
#pragma once

#include <chrono>

namespace collage {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  // Returns the seconds so far and restarts at 0.
  double restart() {
    const Clock::time_point now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - begin_).count();
    begin_ = now;
    return elapsed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace collage
