// Hashes of our own sources, so that results of an older version of our code are not used as
// results of this one.
#pragma once

#include <string>
#include <string_view>

namespace collage {

// Hashes a backend's sources, for the backend's version and so for the keys of measurements and of
// compiled objects.
std::string source_fingerprint(std::string_view backend);
// Hashes all code that measures and judges kernels: the reference, the runtime, checks and timing.
std::string judges_fingerprint();
// Hashes all code that makes, runs and judges programs, except backends.
std::string programs_fingerprint();

}  // namespace collage
