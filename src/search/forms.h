// Which forms of a group exist, as a set, and the cheapest way to one more.
#pragma once

#include <limits>
#include <span>

#include "search/compact.h"

namespace collage::search {

// Making a form that a column does not read, because it is a cheaper source for one it does read
// (or for a result's plain form, once the column has given its outputs), or for another detour's,
// and others may read it too.
struct Detour {
  uint32_t group, via, wanted;
  bool output;
};

// Adds to `mask` the forms on the cheapest way from those that exist to `to`. Returns what that
// costs, or infinity where there is no way; `visit(from, next)` is called for each conversion.
template <typename Visit>
double make_form(const Group& group, FormMask& mask, uint32_t to, Visit&& visit) {
  if (mask >> to & 1) return 0;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double best = kNone;
  uint32_t from = 0;
  for (uint32_t f = 0; f < group.forms.size(); ++f)
    if ((mask >> f & 1) && group.convert(f, to) < best) {
      best = group.convert(f, to);
      from = f;
    }
  if (best == kNone) return best;
  while (from != to) {
    const uint32_t next = group.next[from * group.forms.size() + to];
    visit(from, next);
    mask |= 1u << next;
    from = next;
  }
  return best;
}

inline double make_form(const Group& group, FormMask& mask, uint32_t to) {
  return make_form(group, mask, to, [](uint32_t, uint32_t) {});
}

// What making a form would cost.
inline double form_cost(const Group& group, FormMask mask, uint32_t to) {
  return make_form(group, mask, to);
}

// Calls `make(detour)` for those with a bit in `chosen`: of each group always the one whose form
// costs least to make then. Ends where it gives false; whether it never did. `mask_of(group)`: the
// forms that exist.
template <typename MaskOf, typename Make>
bool make_detours(std::span<const Detour> detours, uint32_t chosen, bool output,
                  const CompactProblem& compact, MaskOf&& mask_of, Make&& make) {
  for (size_t d = 0; d < detours.size(); ++d)
    if (detours[d].output != output) chosen &= ~(1u << d);
  while (chosen != 0) {
    size_t first = 0;
    double least = std::numeric_limits<double>::infinity();
    bool found = false;
    for (size_t d = 0; d < detours.size(); ++d) {
      if (!(chosen >> d & 1)) continue;
      const uint32_t g = detours[d].group;
      const double cost = form_cost(compact.groups[g], mask_of(g), detours[d].via);
      if (found && cost >= least) continue;
      found = true;
      first = d;
      least = cost;
    }
    chosen &= ~(1u << first);
    if (!make(detours[first])) return false;
  }
  return true;
}

}  // namespace collage::search
