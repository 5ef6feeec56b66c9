// Registers the backends of this build: one line each. `register_all` is idempotent and also
// registers the operators.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

void register_all();

// A backend that this build was made without, and the packages that it needs.
struct MissingBackend {
  std::string name, remedy;
};
std::vector<MissingBackend> missing_backends();

}  // namespace collage
