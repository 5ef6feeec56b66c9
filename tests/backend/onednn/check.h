// Checks every variant that oneDNN offers for a function.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backend/check.h"

namespace collage::testing {

struct Checked {
  std::set<std::string> names;        // of the variants
  std::set<std::string> layouts;      // of their results
  std::vector<std::string> variants;  // whole text forms
};

// Fails the test when there is no variant, or one is wrong. `tolerance` is relative to the root of
// the mean square of the result; integers may be off by one where they are rounded.
Checked check(const Function& function, double tolerance = 2e-5);
// The same of the lowered variants, for processors that have some. Results' encodings stand in for
// their layouts. Split products keep to a tolerance of their own.
Checked check_lowered(const Function& function, double tolerance = 2e-2);
// The reason for which there is no variant; fails the test when there is one.
std::string refusal(const Function& function);

}  // namespace collage::testing
