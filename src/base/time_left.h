// Estimates how long work will still take, from its finished pieces. Pieces differ, and more of
// them are found on the way, so raw estimates jump; the returned ones are smoothed.
#pragma once

#include <cstddef>

namespace collage {

class TimeLeft {
 public:
  // Returns seconds: after `elapsed` seconds `worked` pieces (at least one) are done and
  // `remaining` are not. At most a tenth above the last result.
  double tell(double elapsed, size_t worked, size_t remaining);

 private:
  double told_ = 0;  // 0: nothing yet
};

}  // namespace collage
