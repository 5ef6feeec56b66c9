// Processor time, which does not depend on what else the machine does.
#pragma once

#include <ctime>

namespace collage {

// Seconds that a clock of processor time shows: CLOCK_THREAD_CPUTIME_ID, of the calling thread, or
// CLOCK_PROCESS_CPUTIME_ID, of all threads.
inline double cpu_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds that a thread has computed. Asked on the thread that made it.
class ThreadStopwatch {
 public:
  double seconds() const { return cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begin_; }

 private:
  const double begin_ = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace collage
