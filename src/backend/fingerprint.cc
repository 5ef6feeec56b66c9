#include "backend/fingerprint.h"

// The one generated file; see cmake/backends.cmake.
#include <backend_fingerprints.h>

namespace collage {

std::string source_fingerprint(std::string_view backend) {
  for (const auto& entry : kBackendFingerprints)
    if (backend == entry.backend) return entry.hash;
  return "";
}

}  // namespace collage
