// Hashes of our own sources, so that what an older version of our code found is not taken for what
// this one would find.
#pragma once

#include <string>
#include <string_view>

namespace collage {

// Of a backend's sources. It belongs into the backend's version, hence into the keys of
// measurements and of compiled objects.
std::string source_fingerprint(std::string_view backend);
// Of all that measures and judges kernels: the reference, the runtime, checks and timing.
std::string judges_fingerprint();
// Of all that makes, runs and judges programs, but for backends.
std::string programs_fingerprint();

}  // namespace collage
