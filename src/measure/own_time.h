// The time that a silent process had to itself, without what it spent waiting for a processor or a
// disk.
#pragma once

#include <sys/types.h>

namespace collage {

class OwnTime {
 public:
  explicit OwnTime(pid_t process) : process_(process), ran_(seconds_run()) {}
  // Returns the part of the `seconds` since the last call (first: since construction) in which the
  // process ran or slept voluntarily. All of them if the system does not state it.
  double of(double seconds);

 private:
  double seconds_run() const;  // by all threads, since it began
  bool waits() const;          // any thread, for a processor or a disk
  pid_t process_;
  double ran_;
};

}  // namespace collage
