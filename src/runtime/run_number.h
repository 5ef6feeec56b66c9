// Which run of a program's context this thread computes, from 0: what is drawn at random depends on
// it. Whoever runs kernels says so around them; everywhere else it is 0, so that checks, timings
// and constants that are computed while compiling draw the same numbers always.
#pragma once

#include <cstdint>

namespace collage {

class RunNumber {
 public:
  explicit RunNumber(uint64_t number);
  ~RunNumber();
  RunNumber(const RunNumber&) = delete;
  RunNumber& operator=(const RunNumber&) = delete;

  static uint64_t current();

 private:
  uint64_t before_;
};

}  // namespace collage
