// DeferredBound: what covering the deferred nodes of a scan's state costs at least beyond the
// bound: the least sum of reduced costs of disjoint columns that hold them all and still fit.
#pragma once

#include <span>
#include <string>
#include <unordered_map>

#include "search/placement.h"

namespace collage::search {

class DeferredBound {
 public:
  explicit DeferredBound(const Placement& placement) : placement_(placement) {}

  // Of a state in which position i was decided last: `exceptions` are its deferred positions (up to
  // i) and those covered ahead (above i), ascending. Infinity where no columns hold what is
  // deferred; 0 where that takes too long to find out. Answers are kept for one i after the other.
  double of(uint32_t i, std::span<const uint32_t> exceptions);

 private:
  const Placement& placement_;
  uint32_t position_ = 0;  // of the answers in cache_
  std::unordered_map<std::u32string, double> cache_;
};

}  // namespace collage::search
