/// OpenBLAS, loaded when it is first asked for: its initialiser takes memory for every thread, and
/// does not end where it gets none.
#pragma once

#include <cblas.h>

#include "base/result.h"

namespace collage::blas {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_sgemv) sgemv;
};

/// kUnavailable where it cannot be loaded, is of another version than this build, or has threads of
/// its own: only the build on OpenMP computes with the process's team.
Result<const OpenBlas*> openblas();

/// "0.3.21", of this build.
std::string openblas_version();

}  // namespace collage::blas
