// How long work will still take, by what its finished pieces took. Pieces differ, and more of them
// are found on the way, so such estimates jump; what is told of them does not.
#pragma once

#include <cstddef>

namespace collage {

class TimeLeft {
 public:
  // Seconds: after `elapsed` of them `worked` pieces (at least one) are done and `remaining` are
  // not. Above what it told last by a tenth at most.
  double tell(double elapsed, size_t worked, size_t remaining);

 private:
  double told_ = 0;  // 0: nothing yet
};

}  // namespace collage
