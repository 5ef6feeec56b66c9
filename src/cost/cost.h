// Cost of running one kernel: measured seconds with their spread, unknown (nobody measured it), or
// invalid with the reason why the kernel cannot be used. Never a bare NaN or infinity.
#pragma once

#include <string>
#include <variant>

namespace collage {

struct Measured {
  double median = 0, p10 = 0, p90 = 0;  // seconds
  int samples = 0;
  // What the search adds up: a little above the median, so that of two kernels with equal medians
  // the steadier one wins.
  double seconds() const { return median + 0.1 * (p90 - median); }
};
struct Unknown {};
struct Invalid {
  std::string reason;
};
using Cost = std::variant<Unknown, Measured, Invalid>;

inline const Measured* measured(const Cost& cost) { return std::get_if<Measured>(&cost); }
// 0 where nothing was measured.
inline double median_seconds(const Cost& cost) {
  const Measured* m = measured(cost);
  return m != nullptr ? m->median : 0;
}

// Of how kernels are timed: raised when figures change their meaning. A part of every key.
constexpr int kTimingMethod = 3;

// What the caches keep from one run of a kernel to the next in its model. A part of every key.
struct CacheState {
  enum class Kind {
    kWarm,       // everything: all of the model fits the private caches of the cores
    kCold,       // in shared caches everything, in private ones nothing but the kernel's inputs
    kStreaming,  // what `megabytes` of other data, passing through the shared caches, leave there
  };
  Kind kind = Kind::kCold;
  int megabytes = 0;

  static CacheState warm() { return {Kind::kWarm}; }
  // Of a model with so many bytes of constants. In few steps, 192 MB to 1 GB, so that models of
  // about the same size share measurements.
  static CacheState streaming(double bytes);
  bool is_warm() const { return kind == Kind::kWarm; }
  bool is_streaming() const { return kind == Kind::kStreaming; }
  std::string name() const;
};

}  // namespace collage
