// Ctrl-C as a request: long work checks `interrupted` between two pieces, keeps its results and
// goes on with the best so far. A second Ctrl-C ends the process at once.
#pragma once

namespace collage {

// While one exists, the first SIGINT or SIGTERM only sets the flag. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

bool interrupted();  // stays true until set_interrupted (collage/progress.h)

}  // namespace collage
