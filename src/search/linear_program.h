// The linear-programming solver (Clp), loaded when it is first asked for: it brings a library of
// linear algebra along, whose initialiser may take 300 MB of addresses.
#pragma once

#include <vector>

#include "base/result.h"

namespace collage::search {

// Minimises costs · x where x >= 0 and lower <= A x <= upper. Column c of A has the entries
// [starts[c], starts[c + 1]) of `rows` and `values`.
struct LinearProgram {
  std::vector<int> starts = {0}, rows;
  std::vector<double> values, costs, lower, upper;
};

struct LinearSolution {
  std::vector<double> columns;  // x
  std::vector<double> prices;   // of the rows: the dual solution
};

// It may stop early after so many seconds. kUnavailable where there is no solver.
Result<LinearSolution> solve(const LinearProgram& program, double max_seconds);

}  // namespace collage::search
