// The loop inside a measuring worker (measure/worker.h).
#pragma once

namespace collage {

// Says which build it is, reads tasks from descriptor 3, a line each, and answers on 4 until the
// input ends; 5, where it is given, is the memory shared with the parent. Backends must be
// registered. Returns the exit status when the descriptors are no such thing, else never.
int run_worker();

}  // namespace collage
