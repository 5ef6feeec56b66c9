// The ways in which a contraction can be computed.
#pragma once

#include <string>
#include <vector>

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/parts.h"

namespace collage::contraction {

struct Schedule {
  Parts parts;  ///< of the image and of the weights
  /// What the threads share out: blocks of the result's rows, or of its columns.
  bool by_columns = false;
  /// For each block of weights all rows, or for each block of rows all weights.
  bool weights_outer = false;

  std::string to_string() const;
};

/// What the weights take, packed.
int64_t weight_bytes(const Contraction& contraction, const Parts& parts);
/// Of that: what stays in a core's own cache.
constexpr int64_t kCachedWeights = 1 << 20;

/// Those worth measuring, most promising first.
std::vector<Schedule> schedules(const Contraction& contraction, Parts parts, int threads);

}  // namespace collage::contraction
