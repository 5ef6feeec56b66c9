// The number of the run that this thread computes, from 0, which random draws depend on. Code that
// runs a user's plan sets it; everywhere else it is 0, so that checks, timings and constants that
// are computed while compiling always draw the same numbers.
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
