// ScaledBounds: what a kernel that nobody measured takes at least, by what others of its target
// were seen to take. The bound of an ideal machine (analytic.h) is far below what kernels reach: by
// it the parts of a fused kernel look cheaper than the whole once that is measured, and all of them
// would be measured too. So the bound is scaled by how far above its own the best measured kernel
// stayed: of those with the same anchors (all but elementwise operators and movements, with their
// shapes); else, of the best known for any one of its anchors, where each is known; or, without an
// anchor, of all of the target's without one, once there are a few.
//
// It depends on which kernels are known, not on the order in which they became so: a compilation
// that finds them in the database ends with the same estimates as the one that measured them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/expr.h"
#include "measure/task.h"

namespace collage {

class ScaledBounds {
 public:
  explicit ScaledBounds(int threads) : threads_(threads) {}

  // In seconds.
  double least(const Function& function, const Target& target) const;
  // What a function of that canonical text costs, instead of what was known of it.
  void learn(const Function& function, const std::string& text, const TargetCosts& costs);

 private:
  struct Bound {
    double seconds = 0;   // on an ideal machine
    std::string anchors;  // a line each
  };
  const Bound& bound_of(const Function& function, const Target& target) const;
  // The best that is known with these anchors, if anything is.
  std::optional<double> ratio_of(const std::string& target, const std::string& anchors) const;

  const int threads_;
  // By target and anchors, then by text: seconds measured, as a multiple of its bound.
  std::map<std::pair<std::string, std::string>, std::map<std::string, double>> ratios_;
  mutable std::map<std::pair<Function, std::string>, Bound> bounds_;  // by kind and cores
};

}  // namespace collage
