// Runs OpenMP calls of libraries on the process's teams (runtime/team_pool.h). oneDNN, OpenBLAS and
// code compiled with -fopenmp call GCC's OpenMP library, which keeps a team for each calling
// thread, ends the process if no thread is available, does not survive a fork and waits for the
// slowest of its threads. This redirects the calls of one library of the process by the table
// through which it calls others. The application's own OpenMP stays unchanged.
#pragma once

#include "base/result.h"

namespace collage {

// Redirects the calls of the library that holds `address`. Fails if it calls a function that is not
// offered here; then none of its calls is redirected.
Status lead_openmp_calls(const void* address);

}  // namespace collage
