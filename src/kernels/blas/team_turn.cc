#include "kernels/blas/team_turn.h"

#include <cblas.h>
#include <omp.h>

#include "runtime/openmp_calls.h"

namespace collage::blas {

std::unique_lock<std::mutex> turn_at_team() {
  static std::mutex mutex;
  // OpenBLAS keeps threads of its own where its calls cannot be led: slower, not wrong.
  static const bool led = lead_openmp_calls(reinterpret_cast<const void*>(&cblas_sgemm)).ok();
  (void)led;
  if (omp_get_max_threads() == 1 || omp_in_parallel()) return {};
  return std::unique_lock(mutex);
}

}  // namespace collage::blas
