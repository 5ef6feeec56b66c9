#include "measure/pace.h"

#include <chrono>
#include <thread>

#include "base/interrupt.h"
#include "base/thread_stopwatch.h"

namespace collage {

namespace {

// Of all threads of this process but the calling one.
double others_cpu_seconds() {
  return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace

void Pace::rest() {
  constexpr double kLook = 0.05, kIdle = 0.05;  // seconds of a look; of a core that count as none
  const double worked = since_.seconds();
  const double most = worked * (1 - most_busy_) / most_busy_;
  const Stopwatch resting;
  while (!stopped_ && resting.seconds() < most) {
    const double before = others_cpu_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(kLook));
    if (others_cpu_seconds() - before < kIdle * kLook) break;
  }
  rested_ = rested_ + resting.seconds();
  since_.restart();
}

bool is_stopped(const Pace* pace) {
  return interrupted() || (pace != nullptr && pace->is_stopped());
}

}  // namespace collage
