// Reports the progress of long work. Called from the compiling thread, never while something is
// timed in this process.
#pragma once

#include <cstddef>
#include <string_view>

namespace collage {

class Progress {
 public:
  virtual ~Progress() = default;
  // Called before a phase, with the number of pieces that need work, and the seconds that may take.
  virtual void begin(std::string_view phase, size_t unknown, size_t total, double seconds) {
    (void)phase, (void)unknown, (void)total, (void)seconds;
  }
  // Called when `done` of `total` pieces of the phase are finished, of which `failed` gave nothing
  // usable and `cached` needed no work.
  virtual void update(std::string_view phase, size_t done, size_t total, size_t cached,
                      size_t failed) = 0;
  virtual void finish(std::string_view phase) = 0;
};

}  // namespace collage
