// The blas backend: matrix products through CBLAS (OpenBLAS on the process's teams).
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_blas_backend();

}  // namespace collage
