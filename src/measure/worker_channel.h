// The descriptors and shared memory between a worker and its parent (task.h has the protocol).
#pragma once

#include <atomic>
#include <cstdint>

namespace collage {

// Descriptors in the worker; the last is the shared memory.
inline constexpr int kTasksFd = 3, kEventsFd = 4, kSharedFd = 5;

struct SharedWithWorker {
  std::atomic<int32_t> running;  // what is timed at the moment: a position in "timing"
  std::atomic<uint32_t> beats;   // grows with every batch of runs
  std::atomic<uint32_t> lacked;  // since a subject was begun: bits of Lack (fault.h)
};

}  // namespace collage
