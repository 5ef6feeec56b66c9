// Scan: the search itself. Nodes are decided one by one along a dataflow order: a node is either
// the point where a column is applied, or left for a column applied further on, or it was covered
// ahead by a column with several exits. A state after i decisions is
//   the exceptions    positions before i left for later, positions from i on covered ahead
//   the live forms    for every group that an uncovered node reads, the forms in which it exists
// so the states form layers, one per node. A layer keeps the cheapest path to each state, drops
// states that another one of the layer beats even after converting what it lacks, drops states
// whose cost plus bound (potentials.h) reaches the best cover known, and keeps at most `width` of
// the rest, best bound first. If nothing was dropped for width, the result is a cheapest cover;
// otherwise it is that of a beam search, with the least bound of what was dropped.
//
// The order is cut at articulations: layers that no column spans and where no more than one live
// group has a choice of forms, so that few states pass. Between two cuts lies a region; one that is
// too hard for its width says so, and can be given more without the others.
//
// A column is applied at the last of its nodes before the first outside reader of its results; what
// it reads must be given by nodes before that point. That holds for every candidate with one exit.
// Where it does not hold in this order the column is `incompatible`: the caller forces such columns
// in another order (search.cc).
#pragma once

#include "search/compact.h"
#include "search/potentials.h"

namespace collage::search {

struct Step {
  uint32_t column;
  uint32_t detours;  // bit set over the place's detours
};

struct ScanOptions {
  std::vector<size_t> widths;  // states kept, by layer; the first layer is the start alone
  double upper_bound = 0;      // only covers that cost less are wanted
  double deadline = 0;         // now() by which to give up
};

struct ScanResult {
  bool found = false;
  double cost = 0;           // seconds
  std::vector<Step> steps;   // in order
  bool complete = true;      // nothing was dropped for width or time
  std::vector<bool> narrow;  // by layer: of a region where something was dropped for width
  double dropped = 0;        // least cost + bound of what was dropped; infinity when complete
  size_t states = 0;
};

double now();  // seconds on the steady clock

class Scan {
 public:
  // `order` is a dataflow order of the nodes; columns with usable[c] false are ignored.
  Scan(const CompactProblem& compact, const Potentials& potentials, std::vector<uint32_t> order,
       const std::vector<bool>& usable);

  // Usable columns that cannot be applied in this order.
  const std::vector<uint32_t>& incompatible() const { return incompatible_; }
  // Layers of the scan, the first one included, and how many regions the cuts make of them.
  size_t layers() const { return order_.size() + 1; }
  size_t regions() const { return region_.empty() ? 0 : region_.back() + 1; }
  ScanResult run(const ScanOptions& options) const;
  // With one width for all layers.
  ScanResult run(size_t width, double upper_bound, double deadline) const {
    return run({std::vector<size_t>(layers(), width), upper_bound, deadline});
  }
  // The cover that some steps make: kernels and conversions, with their cost.
  Cover decode(const std::vector<Step>& steps) const;

 private:
  friend class Layers;
  // Making a form that this column does not read, because it is a cheaper source for one it does
  // read (or for a result's plain form, once it has given its outputs) and others may read it too.
  struct Detour {
    uint32_t group, via, wanted;
    bool output;
  };
  struct Place {  // a usable column, applied at a position
    uint32_t column;
    uint32_t set;
  };
  struct NodeSet {                 // the positions that a column covers
    uint32_t at;                   // where it is applied
    std::vector<uint16_t> before;  // its positions below `at`, ascending
    std::vector<uint16_t> after;   // its positions above
    double reduced;                // least reduced cost of its columns
  };

  void place_columns(const std::vector<bool>& usable);
  std::vector<Detour> find_detours(const Column& column) const;
  void find_live_groups();
  void find_regions();
  // Adds to `mask` the forms on the cheapest way to `to`; its cost, or infinity. `visit(from, to)`
  // is called for each conversion.
  template <typename Visit>
  static double make_form(const Group& group, FormMask& mask, uint32_t to, Visit&& visit);

  const CompactProblem& compact_;
  const Potentials& potentials_;
  std::vector<uint32_t> order_, position_;
  std::vector<NodeSet> sets_;
  std::vector<std::vector<Place>> places_;    // by position
  std::vector<std::vector<uint32_t>> later_;  // by position: sets that hold it, applied above
  std::vector<std::vector<uint32_t>> live_;   // by layer: groups that may be live
  std::vector<uint32_t> region_;              // by layer; a cut begins one
  std::vector<std::vector<uint32_t>> reader_positions_;  // by group, as its readers
  std::vector<std::vector<Detour>> detours_;             // by column
  std::vector<double> node_price_;                       // by column: of all its nodes
  std::vector<uint32_t> incompatible_;
};

}  // namespace collage::search
