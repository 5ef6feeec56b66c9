#include "search/layer.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace collage::search {

namespace {

constexpr size_t kMaxDominators = 32;  // states that one state is compared with
constexpr uint32_t kFree = kNoColumn;

// Whether converting in `a`, whose forms are `have`, what it lacks to be `b` costs no more than b
// does already.
bool dominates(const State& a, const uint32_t* have, const State& b, const uint32_t* want,
               const CompactProblem& compact, const std::vector<uint32_t>& live) {
  double cost = a.g;
  for (size_t k = 0; k < live.size(); ++k) {
    uint32_t missing = want[k] & ~have[k];
    if (missing == 0) continue;
    if (have[k] == 0) return false;
    const Group& group = compact.groups[live[k]];
    for (uint32_t f = 0; missing != 0; ++f, missing >>= 1) {
      if (!(missing & 1)) continue;
      double best = kInfinity;
      for (uint32_t from = 0, bits = have[k]; bits != 0; ++from, bits >>= 1)
        if (bits & 1) best = std::min(best, group.convert(from, f));
      cost += best;
    }
    if (cost > b.g) return false;
  }
  return cost <= b.g;
}

}  // namespace

Layer::Layer(size_t expected) {
  size_t size = 1024;
  while (size < 8 * expected) size *= 2;
  table_.assign(size, kFree);
}

size_t Layer::hash(std::span<const uint32_t> key, uint32_t exceptions) const {
  size_t hash = exceptions;
  for (uint32_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
  return hash & (table_.size() - 1);
}

std::span<const uint32_t> Layer::key_of(size_t state) const {
  const size_t begin = states_[state].key;
  const size_t end = state + 1 < states_.size() ? states_[state + 1].key : keys_.size();
  return {keys_.data() + begin, end - begin};
}

void Layer::add(State state, std::span<const uint32_t> key, const Back& back) {
  for (size_t at = hash(key, state.exceptions);; at = (at + 1) & (table_.size() - 1)) {
    if (table_[at] == kFree) {
      table_[at] = static_cast<uint32_t>(states_.size());
      state.key = static_cast<uint32_t>(keys_.size());
      keys_.insert(keys_.end(), key.begin(), key.end());
      states_.push_back(state);
      backs_.push_back(back);
      if (states_.size() * 2 > table_.size()) grow_table();
      return;
    }
    State& known = states_[table_[at]];
    if (known.exceptions != state.exceptions ||
        !std::equal(key.begin(), key.end(), keys_.begin() + known.key))
      continue;
    if (state.g < known.g) {
      state.key = known.key;
      known = state;
      backs_[table_[at]] = back;
    }
    return;
  }
}

void Layer::grow_table() {
  table_.assign(table_.size() * 2, kFree);
  for (uint32_t s = 0; s < states_.size(); ++s) {
    size_t at = hash(key_of(s), states_[s].exceptions);
    while (table_[at] != kFree) at = (at + 1) & (table_.size() - 1);
    table_[at] = s;
  }
}

void Layer::drop_dominated(const CompactProblem& compact, const std::vector<uint32_t>& live) {
  std::vector<uint32_t> order(states_.size());
  std::iota(order.begin(), order.end(), 0);
  auto compare_exceptions = [&](uint32_t a, uint32_t b) {
    const std::span<const uint32_t> x = exceptions(states_[a]), y = exceptions(states_[b]);
    return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const auto c = compare_exceptions(a, b);
    return c != 0 ? c < 0 : states_[a].g < states_[b].g;
  });
  std::vector<uint32_t> kept;
  size_t family = 0;  // where the kept states with these exceptions start
  for (size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && compare_exceptions(order[k - 1], order[k]) != 0) family = kept.size();
    const State& state = states_[order[k]];
    bool beaten = false;
    for (size_t other = family; other < kept.size() && other < family + kMaxDominators && !beaten;
         ++other)
      beaten = dominates(states_[kept[other]], forms(states_[kept[other]]), state, forms(state),
                         compact, live);
    if (!beaten) kept.push_back(order[k]);
  }
  keep(kept);
}

double Layer::narrow(size_t width) {
  if (states_.size() <= width) return kInfinity;
  std::vector<uint32_t> order(states_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const State &x = states_[a], &y = states_[b];
    if (x.bound != y.bound) return x.bound < y.bound;
    return x.exceptions != y.exceptions ? x.exceptions < y.exceptions : a < b;
  });
  const size_t places = std::max<size_t>(1, width / 8);
  size_t taken = 0;
  double dropped = kInfinity;
  std::vector<uint32_t> chosen;
  for (size_t k = 0; k < order.size(); ++k) {
    const bool safe = states_[order[k]].exceptions == 0;
    if (k < width - places || (safe && taken < places)) {
      chosen.push_back(order[k]);
      taken += k >= width - places;
    } else {
      dropped = std::min(dropped, states_[order[k]].bound);
    }
  }
  keep(chosen);
  return dropped;
}

void Layer::keep(const std::vector<uint32_t>& chosen) {
  std::vector<State> states;
  std::vector<Back> backs;
  std::vector<uint32_t> keys;
  for (uint32_t s : chosen) {
    const std::span<const uint32_t> key = key_of(s);
    State state = states_[s];
    state.key = static_cast<uint32_t>(keys.size());
    keys.insert(keys.end(), key.begin(), key.end());
    states.push_back(state);
    backs.push_back(backs_[s]);
  }
  states_ = std::move(states);
  backs_ = std::move(backs);
  keys_ = std::move(keys);
}

}  // namespace collage::search
