// Maps the positions of a padded axis to their sources.
#pragma once

#include <string>

#include "ir/attrs.h"

namespace collage {

// Returns, for each position of an axis padded by `before` and `after` (negative: cropped), the
// source position, or -1 for the pad value. Modes as nn.pad's.
Ints pad_sources(int64_t extent, int64_t before, int64_t after, const std::string& mode);

}  // namespace collage
