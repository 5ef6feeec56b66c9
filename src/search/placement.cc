#include "search/placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace collage::search {

namespace {

constexpr size_t kMaxDetours = 16;

std::vector<uint32_t> positions_of(const Placement& placement, const Column& column) {
  std::vector<uint32_t> positions;
  for (uint32_t node : column.nodes) positions.push_back(placement.position[node]);
  std::sort(positions.begin(), positions.end());
  return positions;
}

// Where a column that covers these positions is applied; nothing where it cannot be.
std::optional<uint32_t> application_point(const Placement& placement, const Column& column,
                                          const std::vector<uint32_t>& positions) {
  uint32_t first_reader = static_cast<uint32_t>(placement.order.size());
  for (const Use& use : column.outputs)
    for (uint32_t reader : placement.readers[use.group])
      if (!std::binary_search(positions.begin(), positions.end(), reader))
        first_reader = std::min(first_reader, reader);
  const auto above = std::lower_bound(positions.begin(), positions.end(), first_reader);
  if (above == positions.begin()) return std::nullopt;
  const uint32_t at = *(above - 1);
  for (const Use& use : column.inputs) {
    const int32_t root = placement.compact->groups[use.group].root;
    if (root >= 0 && placement.position[static_cast<size_t>(root)] >= at) return std::nullopt;
  }
  return at;
}

NodeSet node_set(uint32_t at, const std::vector<uint32_t>& positions) {
  NodeSet set{at, {}, {}, kInfinity};
  for (uint32_t p : positions) {
    if (p < at) set.before.push_back(p);
    if (p > at) set.after.push_back(p);
  }
  return set;
}

// Whether `to` may be cheaper to make from `via` than from another form, which `via` itself can be
// made from.
bool is_cheaper_source(const Group& group, uint32_t via, uint32_t to) {
  for (uint32_t from = 0; from < group.forms.size(); ++from)
    if (from != via && from != to && group.convert(via, to) < group.convert(from, to) &&
        group.convert(from, via) < kInfinity)
      return true;
  return false;
}

// `all`: false where there are more.
std::vector<Detour> find_detours(const CompactProblem& compact, const Column& column, bool& all) {
  std::vector<Detour> result;
  auto find = [&](uint32_t g, uint32_t wanted, bool output) {
    const Group& group = compact.groups[g];
    if (group.readers.size() + (group.is_result ? 1 : 0) < 2) return;
    // For the wanted form, then for those that are made on its account.
    std::vector<uint32_t> targets = {wanted};
    for (size_t t = 0; t < targets.size(); ++t)
      for (uint32_t via = 0; via < group.forms.size(); ++via) {
        if (std::find(targets.begin(), targets.end(), via) != targets.end()) continue;
        if (!is_cheaper_source(group, via, targets[t])) continue;
        if (result.size() == kMaxDetours) {
          all = false;
          return;
        }
        targets.push_back(via);
        result.push_back({g, via, wanted, output});
      }
  };
  for (const Use& use : column.inputs) find(use.group, use.form, false);
  for (const Use& use : column.outputs)
    if (compact.groups[use.group].is_result) find(use.group, 0, true);
  return result;
}

void apply_columns(Placement& placement, const std::vector<bool>& usable) {
  const CompactProblem& compact = *placement.compact;
  placement.places.resize(placement.order.size());
  placement.later.resize(placement.order.size());
  placement.node_price.assign(compact.columns.size(), 0);
  placement.detours.resize(compact.columns.size());
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> known;
  for (uint32_t c = 0; c < compact.columns.size(); ++c) {
    if (!usable[c]) continue;
    const Column& column = compact.columns[c];
    const std::vector<uint32_t> positions = positions_of(placement, column);
    const std::optional<uint32_t> at = application_point(placement, column, positions);
    if (!at) {
      placement.incompatible.push_back(c);
      continue;
    }
    const auto [it, inserted] =
        known.emplace(std::pair(*at, positions), static_cast<uint32_t>(placement.sets.size()));
    if (inserted) {
      placement.sets.push_back(node_set(*at, positions));
      for (uint32_t p : placement.sets.back().before) placement.later[p].push_back(it->second);
    }
    NodeSet& set = placement.sets[it->second];
    set.reduced = std::min(set.reduced, placement.potentials->reduced[c]);
    for (uint32_t node : column.nodes) placement.node_price[c] += placement.potentials->node[node];
    placement.detours[c] = find_detours(compact, column, placement.all_detours);
    placement.places[*at].push_back({c, it->second});
  }
  for (std::vector<uint32_t>& sets : placement.later)
    std::sort(sets.begin(), sets.end(), [&](uint32_t a, uint32_t b) {
      return placement.sets[a].reduced < placement.sets[b].reduced;
    });
}

void find_live_groups(Placement& placement) {
  const CompactProblem& compact = *placement.compact;
  const size_t layers = placement.layers();
  std::vector<size_t> given(compact.groups.size(), layers), needed(compact.groups.size(), 0);
  for (size_t g = 0; g < compact.groups.size(); ++g)
    if (compact.groups[g].root < 0) given[g] = 0;
  for (size_t p = 0; p < placement.order.size(); ++p)
    for (const Placement::Place& place : placement.places[p]) {
      for (const Use& use : compact.columns[place.column].outputs)
        given[use.group] = std::min(given[use.group], p + 1);
      for (const Use& use : compact.columns[place.column].inputs)
        needed[use.group] = std::max(needed[use.group], p);
    }
  placement.live.resize(layers);
  for (uint32_t g = 0; g < compact.groups.size(); ++g)
    for (size_t layer = given[g]; layer <= needed[g] && layer < layers; ++layer)
      placement.live[layer].push_back(g);
}

void find_regions(Placement& placement) {
  // Differences: +1 where a span begins, -1 behind it.
  std::vector<int> spanned(placement.layers() + 1, 0);
  for (const NodeSet& set : placement.sets) {
    const uint32_t first = set.before.empty() ? set.at : set.before.front();
    const uint32_t last = set.after.empty() ? set.at : set.after.back();
    ++spanned[first + 1];
    --spanned[last + 1];
  }
  int spans = 0;
  uint32_t region = 0;
  for (size_t layer = 0; layer < placement.layers(); ++layer) {
    spans += spanned[layer];
    const auto chosen =
        std::count_if(placement.live[layer].begin(), placement.live[layer].end(),
                      [&](uint32_t g) { return placement.compact->groups[g].forms.size() > 1; });
    // A cut belongs to both regions; here it counts as the end of the first.
    placement.region.push_back(region);
    if (layer > 0 && spans == 0 && chosen <= 1) ++region;
  }
}

}  // namespace

Placement place_columns(const CompactProblem& compact, const Potentials& potentials,
                        std::vector<uint32_t> order, const std::vector<bool>& usable) {
  Placement placement;
  placement.compact = &compact;
  placement.potentials = &potentials;
  placement.order = std::move(order);
  placement.position.resize(placement.order.size());
  for (uint32_t p = 0; p < placement.order.size(); ++p) placement.position[placement.order[p]] = p;
  for (const Group& group : compact.groups) {
    std::vector<uint32_t>& positions = placement.readers.emplace_back();
    for (uint32_t node : group.readers) positions.push_back(placement.position[node]);
  }
  apply_columns(placement, usable);
  find_live_groups(placement);
  find_regions(placement);
  return placement;
}

}  // namespace collage::search
