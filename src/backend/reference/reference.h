// The reference backend: every operator by its reference kernel, simple and exact. Other backends'
// kernels are checked against it. It is also the fallback backend (the host), which takes what no
// other target can. One variant, "reference", plain encodings.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace collage
