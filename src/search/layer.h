// Layer: the states of a scan after the same number of decisions.
//
// A state's key is its exceptions (deferred positions, and those covered ahead; ascending), then
// the set of existing forms of each live group. Keys lie one behind the other in one array, found
// again by a hash table, so that of equal states the cheaper stays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/placement.h"

namespace collage::search {

struct State {
  double bound;         // what a cover through it costs at least
  double f, g;          // path cost + prices; path cost
  uint32_t key;         // where its key starts
  uint32_t exceptions;  // how many its key begins with; live forms follow
};

// How a state was reached: from which one of the layer before, by which column (kNoColumn: its node
// was deferred or had been covered ahead) with which detours.
constexpr uint32_t kNoColumn = ~uint32_t{0};
struct Back {
  uint32_t parent, column, detours;
};

class Layer {
 public:
  // For about `expected` states.
  explicit Layer(size_t expected = 0);

  const std::vector<State>& states() const { return states_; }
  std::vector<Back> take_backs() { return std::move(backs_); }
  std::span<const uint32_t> exceptions(const State& state) const {
    return {keys_.data() + state.key, state.exceptions};
  }
  // By live group, in the order of Placement::live.
  const uint32_t* forms(const State& state) const {
    return keys_.data() + state.key + state.exceptions;
  }

  // Before anything is dropped. `key` is the whole key, the first `state.exceptions` of it the
  // exceptions; `state.key` is set here. Of states with equal keys the one of least g stays.
  void add(State state, std::span<const uint32_t> key, const Back& back);

  // Drops the states that another one beats even after converting what it lacks: of the groups of
  // `live`, this layer's.
  void drop_dominated(const CompactProblem& compact, const std::vector<uint32_t>& live);
  // Keeps that many states, best bound first, but some places are for states with nothing deferred,
  // from which a way on is sure. The least bound of the others; infinity where none was dropped.
  double narrow(size_t width);

 private:
  size_t hash(std::span<const uint32_t> key, uint32_t exceptions) const;
  std::span<const uint32_t> key_of(size_t state) const;
  void grow_table();
  void keep(const std::vector<uint32_t>& states);

  std::vector<State> states_;
  std::vector<Back> backs_;
  std::vector<uint32_t> keys_;
  std::vector<uint32_t> table_;  // open addressing: key -> state; kNoColumn where free
};

}  // namespace collage::search
