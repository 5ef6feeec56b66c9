// Scan: the search itself. Nodes are decided one by one along a dataflow order: a node is either
// the point where a column is applied, or deferred to a column applied further on, or it was
// covered ahead by a column with several exits. A state after i decisions is
//   the exceptions    positions before i that are deferred, positions from i on covered ahead
//   the live forms    for every group that an uncovered node reads, the forms in which it exists
// so the states form layers, one per node. A layer keeps the cheapest path to each state, drops
// states that another one of the layer beats even after converting what it lacks, drops states
// whose cost plus bound (potentials.h, deferred.h) reaches the best cover known, and keeps at most
// `width` of the rest, best bound first. If nothing was dropped for width, the result is a cheapest
// cover; otherwise it is that of a beam search, with the least bound of what was dropped.
//
// The order is cut at articulations: layers that no column spans and where no more than one live
// group has a choice of forms, so that few states pass. Between two cuts lies a region; one that is
// too hard for its width says so, and can be given more without the others.
//
//   placement.h   which columns are applied where, in this order     deferred.h  a bound
//   layer.h       the states of a layer                              decode.h    steps to a cover
#pragma once

#include <optional>

#include "search/placement.h"

namespace collage::search {

struct ScanOptions {
  std::vector<size_t> widths;  // states kept, by layer; the first layer is the start alone
  double upper_bound = 0;      // only covers that cost less are wanted
  double deadline = 0;         // now() by which to give up; 0: never
};

struct ScanResult {
  std::optional<Cover> cover;
  bool complete = true;      // nothing was dropped for width or time
  std::vector<bool> narrow;  // by layer: of a region where something was dropped for width
  double dropped = 0;        // least cost + bound of what was dropped; infinity when complete
  size_t states = 0;
};

double now();  // seconds on the steady clock

class Scan {
 public:
  // `order` is a dataflow order of the nodes; columns with usable[c] false are ignored. `compact`
  // and `potentials` must outlive it.
  Scan(const CompactProblem& compact, const Potentials& potentials, std::vector<uint32_t> order,
       const std::vector<bool>& usable)
      : placement_(place_columns(compact, potentials, std::move(order), usable)) {}

  // Usable columns that cannot be applied in this order: the caller forces them in another one
  // (search.cc).
  const std::vector<uint32_t>& incompatible() const { return placement_.incompatible; }
  // Whether every way to make a form on the account of others was looked at.
  bool all_detours() const { return placement_.all_detours; }
  ScanResult run(const ScanOptions& options) const;
  // With one width for all layers.
  ScanResult run(size_t width, double upper_bound, double deadline) const {
    return run({std::vector<size_t>(placement_.layers(), width), upper_bound, deadline});
  }

 private:
  Placement placement_;
};

}  // namespace collage::search
