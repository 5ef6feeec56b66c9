// Pace: how fast measuring goes on beside the work of the process that it is done for. In the
// foreground it never waits. In the background it waits while the process computes anything else,
// until measuring took no more than a part of the time.
#pragma once

#include <atomic>

#include "base/stopwatch.h"

namespace collage {

class Pace {
 public:
  // The part of the time that measuring takes at most while the process is busy.
  explicit Pace(double most_busy) : most_busy_(most_busy) {}

  // Called between two pieces of work, on the thread that does them: rests as long as that piece
  // asks for. Returns at once after stop().
  void rest();
  void stop() { stopped_ = true; }
  bool is_stopped() const { return stopped_; }
  // Seconds that rests took until now.
  double rested() const { return rested_; }

 private:
  const double most_busy_;
  Stopwatch since_;  // the end of the last rest
  std::atomic<bool> stopped_ = false;
  std::atomic<double> rested_ = 0;
};

// Whether the user interrupted (base/interrupt.h), or who measures in the background stopped it.
// Null: in the foreground.
bool is_stopped(const Pace* pace);

}  // namespace collage
