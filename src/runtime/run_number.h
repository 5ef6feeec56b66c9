// The number of the run that this thread computes, from 0, which random draws depend on. Code that
// runs a user's plan sets it; everywhere else it is 0, so that checks, timings and constants that
// are computed while compiling always draw the same numbers. Nor do functions with effects
// (ir/effects.h) have any there.
#pragma once

#include <cstdint>
#include <optional>

namespace collage {

class RunNumber {
 public:
  // What a thread hands to another one that computes a part of its run.
  struct State {
    std::optional<uint64_t> of_user;
    uint64_t iteration = 0;  // 0: outside of loops
  };
  static State state();
  explicit RunNumber(State state);
  // None: no user's run, for as long as this lives.
  explicit RunNumber(std::optional<uint64_t> number);
  ~RunNumber();
  RunNumber(const RunNumber&) = delete;
  RunNumber& operator=(const RunNumber&) = delete;

  static uint64_t current();                 // that of a loop's iteration is its own
  static std::optional<uint64_t> of_user();  // none where no user's plan runs

 private:
  State before_;
};

// The iterations of a loop that this thread runs, for as long as this lives.
class LoopIteration {
 public:
  LoopIteration();
  ~LoopIteration();
  LoopIteration(const LoopIteration&) = delete;
  LoopIteration& operator=(const LoopIteration&) = delete;

  void begin(uint64_t index);

 private:
  const uint64_t around_;
};

}  // namespace collage
