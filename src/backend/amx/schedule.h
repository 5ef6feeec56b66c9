// The ways in which a contraction can be computed.
#pragma once

#include <string>
#include <vector>

#include "backend/amx/contraction.h"
#include "backend/amx/tiles.h"

namespace collage::amx {

struct Schedule {
  Parts parts;  ///< of the image and of the weights
  /// What the threads share out: blocks of the result's rows, or of its columns.
  bool by_columns = false;
  /// For each block of weights all rows, or for each block of rows all weights.
  bool weights_outer = false;
  bool winograd = false;  ///< of winograd.h; otherwise tap by tap

  std::string to_string() const;
};

/// Those worth measuring, most promising first.
std::vector<Schedule> schedules(const Contraction& contraction, Parts parts, int threads);

}  // namespace collage::amx
