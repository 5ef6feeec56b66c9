// OpenMP over the process's teams (runtime/team_pool.h). oneDNN, OpenBLAS and code compiled with
// -fopenmp call GCC's OpenMP library, which keeps a team for each calling thread, ends the process
// where no thread is to be had, does not live through a fork and waits for the slowest of its
// threads. The calls of one library of the process, and of nobody else, are led here instead, by
// the table through which a library calls others. The application's own OpenMP is left as it is.
#pragma once

#include "base/result.h"

namespace collage {

// The calls of the library that holds `address`. Fails where it calls what is not offered here: then
// all its calls are as they were.
Status lead_openmp_calls(const void* address);

}  // namespace collage
