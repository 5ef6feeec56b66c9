/// Loads OpenBLAS when it is first needed: its initialiser takes memory for every thread, and hangs
/// if it gets none.
#pragma once

#include <cblas.h>

#include "base/result.h"

namespace collage::blas {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_sgemv) sgemv;
};

/// kUnavailable: it cannot be loaded, has another version than this build, or threads of its own:
/// only the build on OpenMP computes with the process's team.
Result<const OpenBlas*> openblas();

/// Returns "0.3.21", of this build.
std::string openblas_version();

}  // namespace collage::blas
