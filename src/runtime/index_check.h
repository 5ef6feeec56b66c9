// Checks indices that a kernel reads, before it runs: an index out of range is an error.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace collage {

// Entry i must be in [-extent, extent), where extent is number i modulo their count; else
// kBadModel.
Status check_indices(const int32_t* values, int64_t count, const std::vector<int64_t>& extents);
Status check_indices(const int64_t* values, int64_t count, const std::vector<int64_t>& extents);

}  // namespace collage
