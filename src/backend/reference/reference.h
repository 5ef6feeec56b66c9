// The reference backend: every operator by its reference kernel, simple and right. It is the oracle
// that other backends' kernels are checked against, and the host of last resort: it takes whatever
// no other target can. One variant, "reference", plain encodings.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace collage
