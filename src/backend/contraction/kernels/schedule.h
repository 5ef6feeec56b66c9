// Schedules of a contraction.
#pragma once

#include <string>
#include <vector>

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/parts.h"

namespace collage::contraction {

struct Schedule {
  Parts parts;  ///< of the image and of the weights
  /// Threads divide blocks of the result's columns, or of its rows.
  bool by_columns = false;
  /// For each block of weights all rows, or for each block of rows all weights.
  bool weights_outer = false;

  std::string to_string() const;
};

/// Returns the bytes of the packed weights.
int64_t weight_bytes(const Contraction& contraction, const Parts& parts);
/// Bytes of weights that stay in a core's own cache.
constexpr int64_t kCachedWeights = 1 << 20;

/// Returns the schedules worth measuring, most promising first.
std::vector<Schedule> schedules(const Contraction& contraction, Parts parts, int threads);

}  // namespace collage::contraction
