#include "search/deferred.h"

#include <algorithm>
#include <limits>

namespace collage::search {

namespace {

// Depth first over the columns for the lowest position that none of the chosen ones holds.
struct DeferredSearch {
  static constexpr size_t kMaxSteps = 2000;
  const Placement& placement;
  uint32_t i;
  std::span<const uint32_t> exceptions;
  std::vector<uint32_t> taken = {};  // positions of the chosen columns
  double best = kInfinity;
  size_t steps = 0;

  bool is_free(uint32_t q) const {  // to cover, and not taken
    return std::binary_search(exceptions.begin(), exceptions.end(), q) == (q <= i) &&
           std::find(taken.begin(), taken.end(), q) == taken.end();
  }
  bool fits(const NodeSet& set) const {
    auto free = [&](uint32_t q) { return is_free(q); };
    return set.at > i && free(set.at) && std::all_of(set.before.begin(), set.before.end(), free) &&
           std::all_of(set.after.begin(), set.after.end(), free);
  }
  void cover(size_t from, double sum) {
    while (from < exceptions.size() && exceptions[from] <= i && !is_free(exceptions[from])) ++from;
    if (from == exceptions.size() || exceptions[from] > i) {
      best = std::min(best, sum);
      return;
    }
    for (uint32_t id : placement.later[exceptions[from]]) {
      const NodeSet& set = placement.sets[id];
      if (sum + set.reduced >= best || ++steps > kMaxSteps) return;
      if (!fits(set)) continue;
      const size_t before = taken.size();
      taken.push_back(set.at);
      taken.insert(taken.end(), set.before.begin(), set.before.end());
      taken.insert(taken.end(), set.after.begin(), set.after.end());
      cover(from + 1, sum + set.reduced);
      taken.resize(before);
    }
  }
};

}  // namespace

double DeferredBound::of(uint32_t i, std::span<const uint32_t> exceptions) {
  if (exceptions.empty()) return 0;
  if (i != position_) cache_.clear();
  position_ = i;
  auto [it, inserted] = cache_.emplace(std::u32string(exceptions.begin(), exceptions.end()), 0);
  if (inserted) {
    DeferredSearch search{placement_, i, exceptions};
    search.cover(0, 0);
    // Given up: no bound, unless nothing was found for lack of any.
    it->second = search.steps > DeferredSearch::kMaxSteps ? 0 : search.best;
  }
  return it->second;
}

}  // namespace collage::search
