// Cost of running one kernel: measured seconds with their spread, unknown (nobody measured it), or
// invalid with the reason why the kernel cannot be used. Never a bare NaN or infinity.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace collage {

// Samples taken in one go, at one moment (blocks.h).
struct Block {
  double median = 0, p10 = 0, p90 = 0;  // seconds
  int samples = 0;
  bool disturbed = false;  // by what else the machine did
};
struct Measured {
  double median = 0, p10 = 0, p90 = 0;  // seconds
  int samples = 0;
  std::vector<Block> blocks = {};  // that this is about; empty: one, that nothing disturbed
  // What the search adds up: a little above the median, so that of two kernels with equal medians
  // the steadier one wins.
  double seconds() const { return median + 0.1 * (p90 - median); }
};
struct Unknown {};
// What kept a kernel from being tried to its end, where something did: a crash of its process (or
// another misdeed), no sign of life, that memory ran out, or that the machine lacked something else
// (fault.h).
enum class Death { kNone, kCrash, kSilence, kMemory, kMachine };
struct Invalid {
  std::string reason;
  Death death = Death::kNone;
  double waited = 0;  // seconds, of kSilence: who waits longer may see it end
};
using Cost = std::variant<Unknown, Measured, Invalid>;

inline const Measured* measured(const Cost& cost) { return std::get_if<Measured>(&cost); }
// 0 where nothing was measured.
inline double median_seconds(const Cost& cost) {
  const Measured* m = measured(cost);
  return m != nullptr ? m->median : 0;
}

// What is in the caches when a kernel starts, see timing.h. A part of every key.
enum class CacheState { kWarm, kCold, kStreaming };
inline const char* cache_state_name(CacheState state) {
  return state == CacheState::kWarm ? "warm" : state == CacheState::kCold ? "cold" : "streaming";
}

}  // namespace collage
