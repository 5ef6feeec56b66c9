// The loop inside a measuring worker (measure/worker.h).
#pragma once

namespace collage {

// States its build, reads tasks from descriptor 3, a line each, and answers on 4 until the input
// ends; 5, if given, is the memory shared with the parent. Backends must be registered. Returns the
// exit status if the descriptors are invalid, else never.
int run_worker();

}  // namespace collage
