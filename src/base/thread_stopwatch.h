// Seconds that this thread has computed, which do not depend on what else the machine does. Asked
// on the thread that made it.
#pragma once

#include <ctime>

namespace collage {

class ThreadStopwatch {
 public:
  double seconds() const { return now() - begin_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  const double begin_ = now();
};

}  // namespace collage
