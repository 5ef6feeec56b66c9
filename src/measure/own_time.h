// The time that a silent process had: what it spent waiting for a processor, or for a disk, says
// nothing of it.
#pragma once

#include <sys/types.h>

namespace collage {

class OwnTime {
 public:
  explicit OwnTime(pid_t process) : process_(process), ran_(seconds_run()) {}
  // Of the `seconds` since the call before, or since it was made, those in which the process ran
  // or slept of its own accord. All of them where the system does not say.
  double of(double seconds);

 private:
  double seconds_run() const;  // by all threads, since it began
  bool waits() const;          // any thread, for a processor or a disk
  pid_t process_;
  double ran_;
};

}  // namespace collage
