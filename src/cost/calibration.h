// Whether a machine measures as others of its kind do: a few fixed kernels are measured several
// times, in the way of all costs, so what falsifies those falsifies these. Workers of a fleet keep
// the figures beside their costs (task_queue.h).
#pragma once

#include <string>
#include <vector>

#include "cost/cost_store.h"

namespace collage {

struct CalibrationFigure {
  std::string kernel;
  double seconds = 0;  // the least of all: other load makes it no longer
  double spread =
      0;  // of the repeats' costs: the second largest, as a multiple of the second least
  bool disturbed = false;  // other load of the machine made it longer, perhaps
};

// Beyond these a machine is noisy: its costs decide nothing.
inline constexpr double kMostSpread = 1.5;
// Of the median of its kind, either way, where that is of three machines at least; what was
// disturbed does not count.
inline constexpr double kMostApart = 1.5;

// Takes a second or two; where the repeats disagree, or were disturbed, up to three times that.
// Nothing after an interrupt, and where no backend has these kernels. kUnavailable: no worker can
// be started.
Result<std::vector<CalibrationFigure>> calibrate(const CostOptions& options);

}  // namespace collage
