#include "search/scan.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "base/hash.h"

namespace collage::search {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kNoColumn = ~uint32_t{0};
constexpr size_t kMaxDetours = 8;
constexpr size_t kMaxDominators = 32;  // states that one state is compared with

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Scan::Scan(const CompactProblem& compact, const Potentials& potentials, std::vector<uint32_t> order,
           const std::vector<bool>& usable)
    : compact_(compact), potentials_(potentials), order_(std::move(order)) {
  COLLAGE_CHECK(order_.size() < 65536, "{} operators are too many to search", order_.size());
  position_.resize(order_.size());
  for (uint32_t p = 0; p < order_.size(); ++p) position_[order_[p]] = p;
  for (const Group& group : compact_.groups) {
    std::vector<uint32_t>& positions = reader_positions_.emplace_back();
    for (uint32_t node : group.readers) positions.push_back(position_[node]);
  }
  place_columns(usable);
  find_live_groups();
  find_regions();
}

void Scan::place_columns(const std::vector<bool>& usable) {
  places_.resize(order_.size());
  later_.resize(order_.size());
  node_price_.assign(compact_.columns.size(), 0);
  detours_.resize(compact_.columns.size());
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> known;
  for (uint32_t c = 0; c < compact_.columns.size(); ++c) {
    if (!usable[c]) continue;
    const Column& column = compact_.columns[c];
    std::vector<uint32_t> positions;
    for (uint32_t node : column.nodes) positions.push_back(position_[node]);
    std::sort(positions.begin(), positions.end());
    uint32_t first_reader = static_cast<uint32_t>(order_.size());
    for (const Use& use : column.outputs)
      for (uint32_t reader : reader_positions_[use.group])
        if (!std::binary_search(positions.begin(), positions.end(), reader))
          first_reader = std::min(first_reader, reader);
    auto above = std::lower_bound(positions.begin(), positions.end(), first_reader);
    bool compatible = above != positions.begin();
    uint32_t at = compatible ? *(above - 1) : 0;
    for (const Use& use : column.inputs) {
      int32_t root = compact_.groups[use.group].root;
      compatible = compatible && (root < 0 || position_[static_cast<size_t>(root)] < at);
    }
    if (!compatible) {
      incompatible_.push_back(c);
      continue;
    }
    auto [it, inserted] =
        known.emplace(std::pair(at, positions), static_cast<uint32_t>(sets_.size()));
    if (inserted) {
      NodeSet set{at, {}, {}, kInfinity};
      for (uint32_t p : positions) {
        if (p < at) set.before.push_back(static_cast<uint16_t>(p));
        if (p > at) set.after.push_back(static_cast<uint16_t>(p));
        if (p < at) later_[p].push_back(it->second);
      }
      sets_.push_back(std::move(set));
    }
    NodeSet& set = sets_[it->second];
    set.reduced = std::min(set.reduced, potentials_.reduced[c]);
    for (uint32_t node : column.nodes) node_price_[c] += potentials_.node[node];
    detours_[c] = find_detours(column);
    places_[at].push_back({c, it->second});
  }
  for (std::vector<uint32_t>& sets : later_)
    std::sort(sets.begin(), sets.end(),
              [&](uint32_t a, uint32_t b) { return sets_[a].reduced < sets_[b].reduced; });
}

std::vector<Scan::Detour> Scan::find_detours(const Column& column) const {
  std::vector<Detour> result;
  auto find = [&](uint32_t g, uint32_t wanted, bool output) {
    const Group& group = compact_.groups[g];
    if (group.readers.size() + (group.is_result ? 1 : 0) < 2) return;
    for (uint32_t via = 0; via < group.forms.size(); ++via) {
      if (via == wanted || result.size() == kMaxDetours) continue;
      bool cheaper = false;
      for (uint32_t from = 0; from < group.forms.size(); ++from)
        cheaper = cheaper || (from != via && from != wanted &&
                              group.convert(via, wanted) < group.convert(from, wanted) &&
                              group.convert(from, via) < kInfinity);
      if (cheaper) result.push_back({g, via, wanted, output});
    }
  };
  for (const Use& use : column.inputs) find(use.group, use.form, false);
  for (const Use& use : column.outputs)
    if (compact_.groups[use.group].is_result) find(use.group, 0, true);
  return result;
}

void Scan::find_live_groups() {
  size_t layers = order_.size() + 1;
  std::vector<size_t> given(compact_.groups.size(), layers), needed(compact_.groups.size(), 0);
  for (size_t g = 0; g < compact_.groups.size(); ++g)
    if (compact_.groups[g].root < 0) given[g] = 0;
  for (size_t p = 0; p < order_.size(); ++p)
    for (const Place& place : places_[p]) {
      for (const Use& use : compact_.columns[place.column].outputs)
        given[use.group] = std::min(given[use.group], p + 1);
      for (const Use& use : compact_.columns[place.column].inputs)
        needed[use.group] = std::max(needed[use.group], p);
    }
  live_.resize(layers);
  for (uint32_t g = 0; g < compact_.groups.size(); ++g)
    for (size_t layer = given[g]; layer <= needed[g] && layer < layers; ++layer)
      live_[layer].push_back(g);
}

void Scan::find_regions() {
  std::vector<int> spanned(layers() + 1, 0);  // differences: +1 where a span begins, -1 behind it
  for (const NodeSet& set : sets_) {
    uint32_t first = set.before.empty() ? set.at : set.before.front();
    uint32_t last = set.after.empty() ? set.at : set.after.back();
    ++spanned[first + 1];
    --spanned[last + 1];
  }
  int spans = 0;
  uint32_t region = 0;
  for (size_t layer = 0; layer < layers(); ++layer) {
    spans += spanned[layer];
    auto chosen = std::count_if(live_[layer].begin(), live_[layer].end(),
                                [&](uint32_t g) { return compact_.groups[g].forms.size() > 1; });
    // A cut belongs to both regions; here it counts as the end of the first.
    region_.push_back(region);
    if (layer > 0 && spans == 0 && chosen <= 1) ++region;
  }
}

template <typename Visit>
double Scan::make_form(const Group& group, FormMask& mask, uint32_t to, Visit&& visit) {
  if (mask >> to & 1) return 0;
  double best = kInfinity;
  uint32_t from = 0;
  for (uint32_t f = 0; f < group.forms.size(); ++f)
    if ((mask >> f & 1) && group.convert(f, to) < best) {
      best = group.convert(f, to);
      from = f;
    }
  if (best == kInfinity) return kInfinity;
  while (from != to) {
    uint32_t next = group.next[from * group.forms.size() + to];
    visit(from, next);
    mask = static_cast<FormMask>(mask | 1u << next);
    from = next;
  }
  return best;
}

// One run over the layers.
class Layers {
 public:
  Layers(const Scan& scan, const ScanOptions& options)
      : scan_(scan), compact_(scan.compact_), options_(options) {}

  ScanResult run() {
    scan_layers();
    for (uint32_t region : scan_.region_) result_.narrow.push_back(narrow_[region]);
    return std::move(result_);
  }

 private:
  void scan_layers() {
    result_.dropped = kInfinity;
    narrow_.assign(scan_.regions(), false);
    slot_.assign(compact_.groups.size(), -1);
    next_slot_.assign(compact_.groups.size(), -1);
    masks_.assign(compact_.groups.size(), 0);
    start();
    for (size_t i = 0; i < scan_.order_.size(); ++i) {
      set_slots(slot_, i);
      set_slots(next_slot_, i + 1);
      next_ = Layer();
      postponed_cache_.clear();
      table_.assign(table_size(now_.states.size()), kNoColumn);
      for (uint32_t s = 0; s < now_.states.size(); ++s) expand(static_cast<uint32_t>(i), s);
      result_.states += now_.states.size();
      clear_slots(slot_, i);
      clear_slots(next_slot_, i + 1);
      prune(i + 1);
      history_.push_back(std::move(next_.backs));
      std::swap(now_, next_);
      if (now_.states.empty()) return;
      if (now() > options_.deadline && options_.deadline > 0) {
        result_.complete = false;
        for (const State& state : now_.states)
          result_.dropped = std::min(result_.dropped, state.bound);
        return;
      }
    }
    finish();
  }

  struct State {
    double bound;         // what a cover through it costs at least
    double f, g;          // path cost + prices; path cost
    uint32_t key;         // where its key starts
    uint16_t exceptions;  // length of the key's first part; live forms follow
  };
  struct Back {
    uint32_t parent, column, detours;
  };
  struct Layer {
    std::vector<State> states;
    std::vector<Back> backs;
    std::vector<uint16_t> keys;
  };

  static size_t table_size(size_t states) {
    size_t size = 1024;
    while (size < 8 * states) size *= 2;
    return size;
  }

  void set_slots(std::vector<int32_t>& slots, size_t layer) {
    for (size_t k = 0; k < scan_.live_[layer].size(); ++k)
      slots[scan_.live_[layer][k]] = static_cast<int32_t>(k);
  }
  void clear_slots(std::vector<int32_t>& slots, size_t layer) {
    for (uint32_t g : scan_.live_[layer]) slots[g] = -1;
  }

  void start() {
    now_.states.push_back({scan_.potentials_.bound, scan_.potentials_.bound, 0, 0, 0});
    for (uint32_t g : scan_.live_[0])
      now_.keys.push_back(compact_.groups[g].root < 0 ? FormMask{1} : FormMask{0});
  }

  std::span<const uint16_t> exceptions(const Layer& layer, const State& state) const {
    return {layer.keys.data() + state.key, state.exceptions};
  }

  // Whether the node at a position is covered in a state of layer i with these exceptions.
  static bool covered(uint32_t position, uint32_t i, std::span<const uint16_t> exceptions) {
    bool exceptional = std::find(exceptions.begin(), exceptions.end(),
                                 static_cast<uint16_t>(position)) != exceptions.end();
    return (position < i) != exceptional;
  }

  // What the existing forms of a group are worth to those who have still to read it.
  double worth(uint32_t g, FormMask mask, uint32_t i, std::span<const uint16_t> exceptions,
               bool* wanted = nullptr) const {
    const std::vector<uint32_t>& readers = scan_.reader_positions_[g];
    double sum = 0;
    for (size_t r = 0; r < readers.size(); ++r) {
      if (covered(readers[r], i, exceptions)) continue;
      if (wanted != nullptr) *wanted = true;
      for (uint32_t f = 0, bits = mask; bits != 0; ++f, bits >>= 1)
        if (bits & 1) sum += scan_.potentials_.reader_price(g, f, r, readers.size());
    }
    return sum;
  }

  void expand(uint32_t i, uint32_t s) {
    const State state = now_.states[s];
    std::span<const uint16_t> left = exceptions(now_, state);
    const uint16_t* forms = now_.keys.data() + state.key + state.exceptions;
    if (std::find(left.begin(), left.end(), static_cast<uint16_t>(i)) != left.end()) {
      changed_.clear();
      buffer_.clear();
      for (uint16_t e : left)
        if (e != i) buffer_.push_back(e);
      postponed_ = postponed(i, buffer_);
      if (postponed_ == kInfinity) return;
      emit(i, state.f, state.g, forms, {s, kNoColumn, 0});
      return;
    }
    for (const Scan::Place& place : scan_.places_[i]) {
      const Scan::NodeSet& set = scan_.sets_[place.set];
      if (!std::includes(left.begin(), left.end(), set.before.begin(), set.before.end())) continue;
      bool clash = false;
      for (uint16_t p : set.after) clash = clash || std::binary_search(left.begin(), left.end(), p);
      if (clash) continue;
      buffer_.clear();
      std::set_difference(left.begin(), left.end(), set.before.begin(), set.before.end(),
                          std::back_inserter(buffer_));
      if (!set.after.empty()) {
        buffer_.insert(buffer_.end(), set.after.begin(), set.after.end());
        std::sort(buffer_.begin(), buffer_.end());
      }
      postponed_ = postponed(i, buffer_);
      if (postponed_ == kInfinity) continue;
      // Every subset of the detours that may help here.
      uint32_t useful = useful_detours(place.column, forms);
      for (uint32_t detours = useful;; detours = (detours - 1) & useful) {
        apply(i, s, state, left, forms, place, detours);
        if (detours == 0) break;
      }
    }
    // Left for later.
    buffer_.assign(left.begin(), left.end());
    buffer_.insert(std::upper_bound(buffer_.begin(), buffer_.end(), static_cast<uint16_t>(i)),
                   static_cast<uint16_t>(i));
    postponed_ = postponed(i, buffer_);
    if (postponed_ == kInfinity) return;
    changed_.clear();
    emit(i, state.f, state.g, forms, {s, kNoColumn, 0});
  }

  uint32_t useful_detours(uint32_t column, const uint16_t* forms) const {
    const std::vector<Scan::Detour>& detours = scan_.detours_[column];
    uint32_t useful = 0;
    for (size_t d = 0; d < detours.size(); ++d) {
      uint32_t mask = slot_[detours[d].group] >= 0 ? forms[slot_[detours[d].group]] : 0;
      if (detours[d].output || !((mask >> detours[d].via | mask >> detours[d].wanted) & 1))
        useful |= 1u << d;
    }
    return useful;
  }

  // What covering the positions left for later costs at least beyond the bound: the least sum of
  // reduced costs of disjoint columns that hold them all and still fit. Infinity when none do.
  double postponed(uint32_t i, const std::vector<uint16_t>& exceptions) {
    if (exceptions.empty()) return 0;
    std::u16string key(exceptions.begin(), exceptions.end());
    auto [it, inserted] = postponed_cache_.emplace(std::move(key), 0);
    if (inserted) {
      Postponed search{scan_, i, exceptions, {}, kInfinity, 0};
      search.cover(0, 0);
      // Given up: no bound, unless nothing was found for lack of any.
      it->second = search.steps > Postponed::kMaxSteps ? 0 : search.best;
    }
    return it->second;
  }

  // Depth first over the columns for the lowest position that none of the chosen ones holds.
  struct Postponed {
    static constexpr size_t kMaxSteps = 2000;
    const Scan& scan;
    uint32_t i;
    const std::vector<uint16_t>& exceptions;
    std::vector<uint16_t> taken;  // positions of the chosen columns
    double best;
    size_t steps;

    bool is_exception(uint32_t q) const {
      return std::binary_search(exceptions.begin(), exceptions.end(), static_cast<uint16_t>(q));
    }
    bool is_free(uint32_t q) const {  // to cover, and not taken
      return is_exception(q) == (q <= i) &&
             std::find(taken.begin(), taken.end(), static_cast<uint16_t>(q)) == taken.end();
    }
    void cover(size_t from, double sum) {
      while (from < exceptions.size() && exceptions[from] <= i && !is_free(exceptions[from]))
        ++from;
      if (from == exceptions.size() || exceptions[from] > i) {
        best = std::min(best, sum);
        return;
      }
      for (uint32_t id : scan.later_[exceptions[from]]) {
        const Scan::NodeSet& set = scan.sets_[id];
        if (sum + set.reduced >= best || ++steps > kMaxSteps) return;
        auto free = [&](uint32_t q) { return is_free(q); };
        if (set.at <= i || !is_free(set.at) ||
            !std::all_of(set.before.begin(), set.before.end(), free) ||
            !std::all_of(set.after.begin(), set.after.end(), free))
          continue;
        size_t before = taken.size();
        taken.push_back(static_cast<uint16_t>(set.at));
        taken.insert(taken.end(), set.before.begin(), set.before.end());
        taken.insert(taken.end(), set.after.begin(), set.after.end());
        cover(from + 1, sum + set.reduced);
        taken.resize(before);
      }
    }
  };

  // Applies a column; buffer_ holds the exceptions after it.
  void apply(uint32_t i, uint32_t s, const State& state, std::span<const uint16_t> left,
             const uint16_t* forms, const Scan::Place& place, uint32_t detours) {
    const Column& column = compact_.columns[place.column];
    double cost = column.cost, worth_before = 0;
    changed_.clear();
    auto mask_of = [&](uint32_t g) -> FormMask& {
      if (std::find(changed_.begin(), changed_.end(), g) == changed_.end()) {
        changed_.push_back(g);
        masks_[g] = slot_[g] >= 0 ? forms[slot_[g]] : FormMask{0};
        if (masks_[g] != 0) worth_before += worth(g, masks_[g], i, left);
      }
      return masks_[g];
    };
    auto ignore = [](uint32_t, uint32_t) {};
    auto make_detours = [&](bool output) {
      const std::vector<Scan::Detour>& all = scan_.detours_[place.column];
      for (size_t d = 0; d < all.size(); ++d) {
        if (!(detours >> d & 1) || all[d].output != output) continue;
        const Group& group = compact_.groups[all[d].group];
        FormMask& mask = mask_of(all[d].group);
        if (mask >> all[d].via & 1 || mask >> all[d].wanted & 1) return false;
        FormMask direct = mask;
        double without = Scan::make_form(group, direct, all[d].wanted, ignore);
        if (direct >> all[d].via & 1 || group.convert(all[d].via, all[d].wanted) >= without)
          return false;
        cost += Scan::make_form(group, mask, all[d].via, ignore);
      }
      return true;
    };
    if (!make_detours(false)) return;
    for (const Use& use : column.inputs) {
      FormMask& mask = mask_of(use.group);
      if (mask == 0) return;
      cost += Scan::make_form(compact_.groups[use.group], mask, use.form, ignore);
      if (cost == kInfinity) return;
    }
    for (const Use& use : column.outputs) {
      FormMask& mask = mask_of(use.group);
      mask = static_cast<FormMask>(mask | 1u << use.form);
    }
    if (!make_detours(true)) return;
    for (const Use& use : column.outputs)
      if (compact_.groups[use.group].is_result)
        cost += Scan::make_form(compact_.groups[use.group], mask_of(use.group), 0, ignore);
    double worth_after = 0;
    for (uint32_t g : changed_) {
      bool wanted = false;
      worth_after += worth(g, masks_[g], i + 1, buffer_, &wanted);
      if (!wanted) masks_[g] = 0;
    }
    double h = worth_before - worth_after - scan_.node_price_[place.column];
    emit(i, state.f + cost + h, state.g + cost, forms, {s, place.column, detours});
  }

  // A state of layer i + 1: exceptions in buffer_, forms as before but for those of changed_.
  void emit(uint32_t i, double f, double g, const uint16_t* forms, Back back) {
    double bound = f + postponed_;
    if (!(bound < options_.upper_bound)) return;
    uint32_t start = static_cast<uint32_t>(next_.keys.size());
    next_.keys.insert(next_.keys.end(), buffer_.begin(), buffer_.end());
    const std::vector<uint32_t>& live = scan_.live_[i + 1];
    size_t masks_at = next_.keys.size();
    for (uint32_t group : live)
      next_.keys.push_back(slot_[group] >= 0 ? forms[slot_[group]] : FormMask{0});
    for (uint32_t group : changed_)
      if (next_slot_[group] >= 0)
        next_.keys[masks_at + static_cast<size_t>(next_slot_[group])] = masks_[group];

    uint16_t exceptions = static_cast<uint16_t>(buffer_.size());
    size_t hash = exceptions;
    for (size_t k = start; k < next_.keys.size(); ++k)
      hash = (hash ^ next_.keys[k]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    size_t mask = table_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      if (table_[at] == kNoColumn) {
        table_[at] = static_cast<uint32_t>(next_.states.size());
        next_.states.push_back({bound, f, g, start, exceptions});
        next_.backs.push_back(back);
        if (next_.states.size() * 2 > table_.size()) grow_table();
        return;
      }
      State& known = next_.states[table_[at]];
      if (known.exceptions != exceptions ||
          !std::equal(next_.keys.begin() + start, next_.keys.end(), next_.keys.begin() + known.key))
        continue;
      next_.keys.resize(start);
      if (g < known.g) {
        known.bound = bound;
        known.f = f;
        known.g = g;
        next_.backs[table_[at]] = back;
      }
      return;
    }
  }

  void grow_table() {
    table_.assign(table_.size() * 2, kNoColumn);
    size_t mask = table_.size() - 1;
    for (uint32_t s = 0; s < next_.states.size(); ++s) {
      const State& state = next_.states[s];
      size_t end = s + 1 < next_.states.size() ? next_.states[s + 1].key : next_.keys.size();
      size_t hash = state.exceptions;
      for (size_t k = state.key; k < end; ++k)
        hash = (hash ^ next_.keys[k]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
      size_t at = hash & mask;
      while (table_[at] != kNoColumn) at = (at + 1) & mask;
      table_[at] = s;
    }
  }

  // Whether converting in `a` what it lacks to be `b` costs no more than b does already.
  bool dominates(const State& a, const State& b, const std::vector<uint32_t>& live) const {
    const uint16_t* have = next_.keys.data() + a.key + a.exceptions;
    const uint16_t* want = next_.keys.data() + b.key + b.exceptions;
    double cost = a.g;
    for (size_t k = 0; k < live.size(); ++k) {
      uint32_t missing = want[k] & ~have[k];
      if (missing == 0) continue;
      if (have[k] == 0) return false;
      const Group& group = compact_.groups[live[k]];
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

  void prune(size_t layer) {
    std::vector<uint32_t> order(next_.states.size());
    for (uint32_t s = 0; s < order.size(); ++s) order[s] = s;
    auto compare_exceptions = [&](uint32_t a, uint32_t b) {
      std::span<const uint16_t> x = exceptions(next_, next_.states[a]);
      std::span<const uint16_t> y = exceptions(next_, next_.states[b]);
      return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
    };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      auto c = compare_exceptions(a, b);
      if (c != 0) return c < 0;
      return next_.states[a].g < next_.states[b].g;
    });
    std::vector<uint32_t> kept;
    size_t family = 0;  // where the kept states with these exceptions start
    for (size_t k = 0; k < order.size(); ++k) {
      if (k > 0 && compare_exceptions(order[k - 1], order[k]) != 0) family = kept.size();
      bool beaten = false;
      for (size_t other = family; other < kept.size() && other < family + kMaxDominators && !beaten;
           ++other)
        beaten = dominates(next_.states[kept[other]], next_.states[order[k]], scan_.live_[layer]);
      if (!beaten) kept.push_back(order[k]);
    }
    if (kept.size() > options_.widths[layer]) {
      keep_best(kept, options_.widths[layer]);
      narrow_[scan_.region_[layer]] = true;
    }
    Layer compacted;
    for (uint32_t s : kept) {
      State state = next_.states[s];
      size_t length = state.exceptions + scan_.live_[layer].size();
      uint32_t key = static_cast<uint32_t>(compacted.keys.size());
      compacted.keys.insert(compacted.keys.end(), next_.keys.begin() + state.key,
                            next_.keys.begin() + state.key + static_cast<ptrdiff_t>(length));
      state.key = key;
      compacted.states.push_back(state);
      compacted.backs.push_back(next_.backs[s]);
    }
    next_ = std::move(compacted);
  }

  // The best by bound; but some places are for states with nothing left for later, from which a way
  // on is sure.
  void keep_best(std::vector<uint32_t>& kept, size_t width) {
    auto by_bound = [&](uint32_t a, uint32_t b) {
      const State& x = next_.states[a];
      const State& y = next_.states[b];
      if (x.bound != y.bound) return x.bound < y.bound;
      return x.exceptions != y.exceptions ? x.exceptions < y.exceptions : a < b;
    };
    std::sort(kept.begin(), kept.end(), by_bound);
    size_t places = std::max<size_t>(1, width / 8), taken = 0;
    std::vector<uint32_t> chosen;
    for (size_t k = 0; k < kept.size(); ++k) {
      bool safe = next_.states[kept[k]].exceptions == 0;
      if (k < width - places || (safe && taken < places)) {
        chosen.push_back(kept[k]);
        taken += k >= width - places;
      } else {
        result_.dropped = std::min(result_.dropped, next_.states[kept[k]].bound);
        result_.complete = false;
      }
    }
    kept = std::move(chosen);
  }

  void finish() {
    result_.found = true;
    result_.cost = now_.states[0].g;
    uint32_t s = 0;
    for (size_t layer = history_.size(); layer-- > 0;) {
      const Back& back = history_[layer][s];
      if (back.column != kNoColumn) result_.steps.push_back({back.column, back.detours});
      s = back.parent;
    }
    std::reverse(result_.steps.begin(), result_.steps.end());
  }

  const Scan& scan_;
  const CompactProblem& compact_;
  const ScanOptions& options_;
  ScanResult result_;
  std::vector<bool> narrow_;  // by region
  Layer now_, next_;
  std::vector<std::vector<Back>> history_;
  std::vector<uint32_t> table_;            // open addressing: key -> state of next_
  std::vector<int32_t> slot_, next_slot_;  // by group: where its forms are in a key
  std::unordered_map<std::u16string, double> postponed_cache_;
  double postponed_ = 0;           // see postponed(), for the state being made
  std::vector<uint16_t> buffer_;   // exceptions of the state being made
  std::vector<uint32_t> changed_;  // groups whose forms differ in it, in masks_
  std::vector<FormMask> masks_;
};

ScanResult Scan::run(const ScanOptions& options) const { return Layers(*this, options).run(); }

Cover Scan::decode(const std::vector<Step>& steps) const {
  const SearchProblem& problem = *compact_.problem;
  Cover cover;
  std::vector<FormMask> masks(compact_.groups.size(), 0);
  for (size_t g = 0; g < masks.size(); ++g)
    if (compact_.groups[g].root < 0) masks[g] = 1;
  auto type_of = [&](TensorRef tensor) {
    return problem.graph->node(tensor.node).expr->type().leaves()[tensor.leaf];
  };
  auto make = [&](uint32_t g, uint32_t form) {
    const Group& group = compact_.groups[g];
    make_form(group, masks[g], form, [&](uint32_t from, uint32_t to) {
      // Between plain and an encoding of a view, the tensor is the view.
      ChosenConversion conversion;
      conversion.tensor = group.forms[to != 0 ? to : from].tensor;
      TensorType type = type_of(conversion.tensor);
      const Encoding plain = plain_encoding(type);
      conversion.from = from != 0 ? group.forms[from].encoding : plain;
      conversion.to = to != 0 ? group.forms[to].encoding : plain;
      conversion.seconds = problem.conversion_cost(type, conversion.from, conversion.to);
      conversion.before = cover.kernels.size();
      cover.seconds += conversion.seconds + problem.launch_penalty;
      cover.conversions.push_back(std::move(conversion));
    });
  };
  for (const Step& step : steps) {
    const Column& column = compact_.columns[step.column];
    const std::vector<Detour>& detours = detours_[step.column];
    auto make_detours = [&](bool output) {
      for (size_t d = 0; d < detours.size(); ++d)
        if ((step.detours >> d & 1) && detours[d].output == output)
          make(detours[d].group, detours[d].via);
    };
    make_detours(false);
    for (const Use& use : column.inputs) make(use.group, use.form);
    cover.kernels.push_back(column.choices[0]);
    cover.seconds += column.cost;
    for (const Use& use : column.outputs)
      masks[use.group] = static_cast<FormMask>(masks[use.group] | 1u << use.form);
    make_detours(true);
    for (const Use& use : column.outputs)
      if (compact_.groups[use.group].is_result) make(use.group, 0);
  }
  return cover;
}

}  // namespace collage::search
