#include "search/scan.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include "search/decode.h"
#include "search/deferred.h"
#include "search/layer.h"

namespace collage::search {

namespace {

// One run over the layers.
class Run {
 public:
  Run(const Placement& placement, const ScanOptions& options)
      : placement_(placement),
        compact_(*placement.compact),
        options_(options),
        deferred_(placement),
        slot_(compact_.groups.size(), -1),
        next_slot_(compact_.groups.size(), -1),
        masks_(compact_.groups.size(), 0) {}

  ScanResult run() {
    result_.dropped = kInfinity;
    narrow_.assign(placement_.regions(), false);
    scan_layers();
    for (uint32_t region : placement_.region) result_.narrow.push_back(narrow_[region]);
    return std::move(result_);
  }

 private:
  void scan_layers() {
    start();
    for (uint32_t i = 0; i < placement_.order.size(); ++i) {
      number_slots(slot_, i);
      number_slots(next_slot_, i + 1);
      next_ = Layer(now_.states().size());
      for (uint32_t s = 0; s < now_.states().size(); ++s) expand(i, s);
      result_.states += now_.states().size();
      forget_slots(slot_, i);
      forget_slots(next_slot_, i + 1);
      prune(i + 1);
      history_.push_back(next_.take_backs());
      std::swap(now_, next_);
      if (now_.states().empty()) return;
      if (options_.deadline > 0 && now() > options_.deadline) {
        for (const State& state : now_.states()) drop(state.bound);
        return;
      }
    }
    finish();
  }

  void drop(double bound) {
    result_.complete = false;
    result_.dropped = std::min(result_.dropped, bound);
  }

  void prune(uint32_t layer) {
    next_.drop_dominated(compact_, placement_.live[layer]);
    const double dropped = next_.narrow(options_.widths[layer]);
    if (dropped == kInfinity) return;
    drop(dropped);
    narrow_[placement_.region[layer]] = true;
  }

  // By group, where its forms are in the keys of a layer; -1 where they are not.
  void number_slots(std::vector<int32_t>& slots, uint32_t layer) {
    for (size_t k = 0; k < placement_.live[layer].size(); ++k)
      slots[placement_.live[layer][k]] = static_cast<int32_t>(k);
  }
  void forget_slots(std::vector<int32_t>& slots, uint32_t layer) {
    for (uint32_t g : placement_.live[layer]) slots[g] = -1;
  }

  void start() {
    std::vector<uint32_t> key;
    for (uint32_t g : placement_.live[0]) key.push_back(compact_.groups[g].root < 0 ? 1 : 0);
    const double bound = placement_.potentials->bound;
    now_.add({bound, bound, 0, 0, 0}, key, {0, kNoColumn, 0});
  }

  // Whether the node at a position is covered in a state of layer i with these exceptions.
  static bool covered(uint32_t position, uint32_t i, std::span<const uint32_t> exceptions) {
    return (position < i) !=
           (std::find(exceptions.begin(), exceptions.end(), position) != exceptions.end());
  }

  // What the existing forms of a group are worth to those who have still to read it.
  double worth(uint32_t g, FormMask mask, uint32_t i, std::span<const uint32_t> exceptions,
               bool* wanted = nullptr) const {
    const std::vector<uint32_t>& readers = placement_.readers[g];
    double sum = 0;
    for (size_t r = 0; r < readers.size(); ++r) {
      if (covered(readers[r], i, exceptions)) continue;
      if (wanted != nullptr) *wanted = true;
      for (uint32_t f = 0, bits = mask; bits != 0; ++f, bits >>= 1)
        if (bits & 1) sum += placement_.potentials->reader_price(g, f, r, readers.size());
    }
    return sum;
  }

  FormMask forms_of(uint32_t g, const uint32_t* forms) const {
    return slot_[g] >= 0 ? forms[slot_[g]] : 0;
  }

  // All ways to decide position i in a state.
  void expand(uint32_t i, uint32_t s) {
    const State state = now_.states()[s];
    const std::span<const uint32_t> left = now_.exceptions(state);
    const uint32_t* forms = now_.forms(state);
    changed_.clear();
    if (std::find(left.begin(), left.end(), i) != left.end()) {  // covered ahead
      exceptions_.assign(left.begin(), left.end());
      std::erase(exceptions_, i);
      emit(i, state.f, state.g, forms, deferred_.of(i, exceptions_), {s, kNoColumn, 0});
      return;
    }
    for (const Placement::Place& place : placement_.places[i]) {
      const NodeSet& set = placement_.sets[place.set];
      if (!apply_exceptions(set, left)) continue;
      const double deferred = deferred_.of(i, exceptions_);
      if (deferred == kInfinity) continue;
      // Every subset of the detours that may help here.
      const uint32_t useful = useful_detours(place.column, forms);
      for (uint32_t detours = useful;; detours = (detours - 1) & useful) {
        apply(i, s, state, left, forms, place, detours, deferred);
        if (detours == 0) break;
      }
    }
    exceptions_.assign(left.begin(), left.end());
    exceptions_.insert(std::upper_bound(exceptions_.begin(), exceptions_.end(), i), i);
    changed_.clear();
    emit(i, state.f, state.g, forms, deferred_.of(i, exceptions_), {s, kNoColumn, 0});
  }

  // exceptions_: those after covering these nodes. False where the state has covered some already.
  bool apply_exceptions(const NodeSet& set, std::span<const uint32_t> left) {
    if (!std::includes(left.begin(), left.end(), set.before.begin(), set.before.end()))
      return false;
    for (uint32_t p : set.after)
      if (std::binary_search(left.begin(), left.end(), p)) return false;
    exceptions_.clear();
    std::set_difference(left.begin(), left.end(), set.before.begin(), set.before.end(),
                        std::back_inserter(exceptions_));
    if (!set.after.empty()) {
      exceptions_.insert(exceptions_.end(), set.after.begin(), set.after.end());
      std::sort(exceptions_.begin(), exceptions_.end());
    }
    return true;
  }

  uint32_t useful_detours(uint32_t column, const uint32_t* forms) const {
    const std::vector<Detour>& detours = placement_.detours[column];
    uint32_t useful = 0;
    for (size_t d = 0; d < detours.size(); ++d) {
      const uint32_t mask = forms_of(detours[d].group, forms);
      if (detours[d].output || !((mask >> detours[d].via | mask >> detours[d].wanted) & 1))
        useful |= 1u << d;
    }
    return useful;
  }

  // Applies a column; exceptions_ holds those after it.
  void apply(uint32_t i, uint32_t s, const State& state, std::span<const uint32_t> left,
             const uint32_t* forms, const Placement::Place& place, uint32_t detours,
             double deferred) {
    const Column& column = compact_.columns[place.column];
    double cost = column.cost, worth_before = 0;
    changed_.clear();
    auto mask_of = [&](uint32_t g) -> FormMask& {
      if (std::find(changed_.begin(), changed_.end(), g) == changed_.end()) {
        changed_.push_back(g);
        masks_[g] = forms_of(g, forms);
        if (masks_[g] != 0) worth_before += worth(g, masks_[g], i, left);
      }
      return masks_[g];
    };
    const std::vector<Detour>& all = placement_.detours[place.column];
    // False where it is made anyway, or is no cheaper source of anything.
    auto make_detour = [&](const Detour& detour) {
      const Group& group = compact_.groups[detour.group];
      FormMask& mask = mask_of(detour.group);
      if (mask >> detour.via & 1 || mask >> detour.wanted & 1) return false;
      FormMask direct = mask;
      const double without = make_form(group, direct, detour.wanted);
      bool helps =
          !(direct >> detour.via & 1) && group.convert(detour.via, detour.wanted) < without;
      for (size_t d = 0; d < all.size() && !helps; ++d)
        helps = (detours >> d & 1) && all[d].group == detour.group &&
                all[d].output == detour.output && !(mask >> all[d].via & 1) &&
                group.convert(detour.via, all[d].via) < form_cost(group, mask, all[d].via);
      if (helps) cost += make_form(group, mask, detour.via);
      return helps;
    };
    if (!make_detours(all, detours, false, compact_, mask_of, make_detour)) return;
    for (const Use& use : column.inputs) {
      FormMask& mask = mask_of(use.group);
      if (mask == 0) return;
      cost += make_form(compact_.groups[use.group], mask, use.form);
      if (cost == kInfinity) return;
    }
    for (const Use& use : column.outputs) mask_of(use.group) |= 1u << use.form;
    if (!make_detours(all, detours, true, compact_, mask_of, make_detour)) return;
    for (const Use& use : column.outputs)
      if (compact_.groups[use.group].is_result)
        cost += make_form(compact_.groups[use.group], mask_of(use.group), 0);
    double worth_after = 0;
    for (uint32_t g : changed_) {
      bool wanted = false;
      worth_after += worth(g, masks_[g], i + 1, exceptions_, &wanted);
      if (!wanted) masks_[g] = 0;
    }
    const double h = worth_before - worth_after - placement_.node_price[place.column];
    emit(i, state.f + cost + h, state.g + cost, forms, deferred, {s, place.column, detours});
  }

  // A state of layer i + 1 with exceptions_; forms as before but for those of changed_.
  void emit(uint32_t i, double f, double g, const uint32_t* forms, double deferred,
            const Back& back) {
    const double bound = f + deferred;
    if (!(bound < options_.upper_bound)) return;
    key_.assign(exceptions_.begin(), exceptions_.end());
    for (uint32_t group : placement_.live[i + 1]) key_.push_back(forms_of(group, forms));
    for (uint32_t group : changed_)
      if (next_slot_[group] >= 0)
        key_[exceptions_.size() + static_cast<size_t>(next_slot_[group])] = masks_[group];
    next_.add({bound, f, g, 0, static_cast<uint32_t>(exceptions_.size())}, key_, back);
  }

  void finish() {
    std::vector<Step> steps;
    uint32_t s = 0;
    for (size_t layer = history_.size(); layer-- > 0;) {
      const Back& back = history_[layer][s];
      s = back.parent;
      if (back.column == kNoColumn) continue;
      steps.push_back({back.column, {}});
      const std::vector<Detour>& detours = placement_.detours[back.column];
      for (size_t d = 0; d < detours.size(); ++d)
        if (back.detours >> d & 1) steps.back().detours.push_back(detours[d]);
    }
    std::reverse(steps.begin(), steps.end());
    result_.cover = decode(compact_, steps);
  }

  const Placement& placement_;
  const CompactProblem& compact_;
  const ScanOptions& options_;
  ScanResult result_;
  DeferredBound deferred_;
  std::vector<bool> narrow_;  // by region
  Layer now_, next_;
  std::vector<std::vector<Back>> history_;
  std::vector<int32_t> slot_, next_slot_;
  // Of the state being made:
  std::vector<uint32_t> exceptions_;
  std::vector<uint32_t> key_;
  std::vector<uint32_t> changed_;  // groups whose forms differ from its parent's, in masks_
  std::vector<FormMask> masks_;
};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ScanResult Scan::run(const ScanOptions& options) const { return Run(placement_, options).run(); }

}  // namespace collage::search
