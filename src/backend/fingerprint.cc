#include "backend/fingerprint.h"

// Generated; see cmake/fingerprints.cmake.
#include <fingerprints.h>

namespace collage {

std::string source_fingerprint(std::string_view backend) {
  for (const auto& entry : kFingerprints)
    if (backend == entry.name) return entry.hash;
  return "";
}

std::string judges_fingerprint() { return source_fingerprint("judges"); }
std::string programs_fingerprint() { return source_fingerprint("programs"); }

}  // namespace collage
