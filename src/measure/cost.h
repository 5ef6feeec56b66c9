// Cost of running one kernel: measured seconds with their spread, unknown (not measured), or
// invalid with the reason why the kernel cannot be used. Never a bare NaN or infinity.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace collage {

// Samples taken in one go (blocks.h).
struct Block {
  double median = 0, p10 = 0, p90 = 0;  // seconds
  int samples = 0;
  bool disturbed = false;  // by other load of the machine
};
struct Measured {
  double median = 0, p10 = 0, p90 = 0;  // seconds
  int samples = 0;
  std::vector<Block> blocks = {};  // of this figure; empty: one that was not disturbed
  // The figure that the search adds up: a little above the median, so that of two kernels with
  // equal medians the steadier one wins.
  double seconds() const { return median + 0.1 * (p90 - median); }
};
struct Unknown {};
// What ended the trial of a kernel early: a crash of its process or a violation of the protocol, a
// timeout, a lack of memory, or a lack of another resource of the machine (fault.h).
enum class WorkerFailure { kNone, kCrash, kTimeout, kMemory, kMachine };
struct Invalid {
  std::string reason;
  WorkerFailure failure = WorkerFailure::kNone;
  double waited = 0;  // seconds, of kTimeout: a longer wait may see it end
};
using Cost = std::variant<Unknown, Measured, Invalid>;

inline const Measured* measured(const Cost& cost) { return std::get_if<Measured>(&cost); }
// Returns 0 if nothing was measured.
inline double median_seconds(const Cost& cost) {
  const Measured* m = measured(cost);
  return m != nullptr ? m->median : 0;
}

// The caches' contents when a kernel starts, see timing.h. A part of every key.
enum class CacheState { kWarm, kCold, kStreaming };
inline const char* cache_state_name(CacheState state) {
  return state == CacheState::kWarm ? "warm" : state == CacheState::kCold ? "cold" : "streaming";
}

}  // namespace collage
