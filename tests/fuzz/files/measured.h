// What one run of the command leaves behind, for targets to start from: its report, and the rows of
// its cost database.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "cost/database.h"

namespace collage::fuzz {

struct Measured {
  nlohmann::json report;
  std::vector<CostRow> rows;
};
// Runs $COLLAGE_BIN, once a process, with costs of its own.
const Measured& measured();

inline constexpr int kMeasuredThreads = 1;

}  // namespace collage::fuzz
