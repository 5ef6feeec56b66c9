// The backends of this build: one line each. `register_all` is idempotent and also registers the
// operators.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

void register_all();

// A backend this build knows of but was made without, and what to install to have it.
struct MissingBackend {
  std::string name, remedy;
};
std::vector<MissingBackend> missing_backends();

}  // namespace collage
