// What a cover takes, predicted: the sum of what its kernels and conversions were measured to take,
// each in isolation, corrected by what covers of other models took end to end.
//
//   seconds = scale * sum + per_switch * switches
//
// The two numbers are fitted to the timings in the cost database by weighted least squares on
// relative errors: every model counts the same, outliers count less (Huber), and a ridge pulls
// towards what was seen on other machines, the more the models disagree, so that little data
// changes little. A model's own covers never take part, nor does what its kernels take inside it
// (in_situ_ratio.h): what is predicted was not looked at.
#pragma once

#include <span>

#include "cost/row_values.h"

namespace collage {

// Parking one pool of threads, waking another, and the kernel that follows finding the caches of
// other cores: before anything was learnt.
inline constexpr double kSecondsPerSwitch = 60e-6;

struct Correction {
  double scale = 1;
  double per_switch = kSecondsPerSwitch;  // seconds
  // Of what kernels, conversions and dispatch take, each measured alone, without what devices save
  // side by side, and of switches between thread pools, the last kernel followed by the first.
  double predict(double seconds, size_t switches) const {
    return scale * seconds + per_switch * static_cast<double>(switches);
  }
};

Correction learn_correction(std::span<const TimingRow> timings);

}  // namespace collage
