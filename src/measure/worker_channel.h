// What a worker talks with its parent through (task.h says what).
#pragma once

#include <atomic>
#include <cstdint>

namespace collage {

// Descriptors in the worker; the last is the memory that they share.
inline constexpr int kTasksFd = 3, kEventsFd = 4, kSharedFd = 5;

struct SharedWithWorker {
  std::atomic<int32_t> running;  // what is timed at the moment: a position in "timing"
  std::atomic<uint32_t> beats;   // grows with every batch of runs
  std::atomic<uint32_t> lacked;  // since a subject was begun: bits of Lack (fault.h)
};

}  // namespace collage
