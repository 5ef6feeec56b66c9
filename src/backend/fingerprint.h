// A hash of a backend's own sources. It belongs into the backend's version, so that measurements
// and compiled objects of an older version of our code are not taken for those of this one.
#pragma once

#include <string>
#include <string_view>

namespace collage {

std::string source_fingerprint(std::string_view backend);

}  // namespace collage
