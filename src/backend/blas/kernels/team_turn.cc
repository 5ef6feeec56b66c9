#include "backend/blas/kernels/team_turn.h"

#include <omp.h>

namespace collage::blas {

std::unique_lock<std::mutex> turn_at_team() {
  static std::mutex mutex;
  if (omp_get_max_threads() == 1 || omp_in_parallel()) return {};
  return std::unique_lock(mutex);
}

}  // namespace collage::blas
